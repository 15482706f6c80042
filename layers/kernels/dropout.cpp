#include "layers/kernels/dropout.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "base/random.h"
#include "layers/kernels/first_derivative.h"
#include "layers/kernels/vector_kernels.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

// One call of the generator computes 16 counters at a time, which gives 128 numbers of 16 bits: one for each
// element of a block.
constexpr int64_t kLanes = 16;
constexpr int64_t kBlock = kLanes * 8;

using Words = std::array<uint32_t, 4 * kLanes>;

/// The random words of a block of 128 elements. `place` tells the block's stretch from others, see Stretches.
ZOO_INLINE void random_words(uint64_t seed, uint64_t place, uint64_t block, Words& words) {
  constexpr uint32_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
  constexpr uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;
  constexpr int rounds = 7;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t counter = block * kLanes + static_cast<uint64_t>(lane);
    auto c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
    auto c2 = static_cast<uint32_t>(place), c3 = static_cast<uint32_t>(place >> 32);
    auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < rounds; ++round) {
      const uint64_t product0 = uint64_t{multiplier0} * c0, product1 = uint64_t{multiplier1} * c2;
      c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
      c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
      c1 = static_cast<uint32_t>(product1);
      c3 = static_cast<uint32_t>(product0);
      key0 += weyl0;
      key1 += weyl1;
    }
    words[lane] = c0;
    words[kLanes + lane] = c1;
    words[2 * kLanes + lane] = c2;
    words[3 * kLanes + lane] = c3;
  }
}

/// An element is dropped if its 16 random bits are below `threshold`; others are multiplied by `scale`.
struct DropoutMask {
  RowSeed rows;
  uint32_t threshold;
  float scale;
};

DropoutMask mask_of(const RowSeed& rows, double p) {
  TORCH_CHECK(p >= 0 && p <= 1, "the probability of dropout must be in 0 … 1, not ", p);
  const auto threshold = static_cast<uint32_t>(std::lround(p * 65536));
  return {rows, threshold, threshold == 65536 ? 0.0F : 65536.0F / static_cast<float>(65536 - threshold)};
}

/// A tensor as stretches of `length` elements, each with random numbers of its own: one for each row, or for
/// each head of a row of attention weights, (B, H, T, S), because their T may depend on the other rows.
struct Stretches {
  int64_t n_heads = 1, length = 0, count = 0;

  explicit Stretches(const torch::Tensor& x) {
    const int64_t n_rows = x.dim() > 0 ? x.size(0) : 1;
    if (x.dim() >= 4) n_heads = x.size(1);
    count = x.numel() > 0 ? n_rows * n_heads : 0;
    length = count > 0 ? x.numel() / count : 0;
  }
  int64_t blocks() const { return (length + kBlock - 1) / kBlock; }
  uint64_t place(int64_t stretch, int64_t first_row) const {
    return static_cast<uint64_t>(stretch % n_heads) << 32 |
           static_cast<uint32_t>(first_row + stretch / n_heads);
  }
};

/// The factors of one block: 0 or `scale`.
ZOO_INLINE void factors(const DropoutMask& mask, uint64_t place, uint64_t block, float* out) {
  Words words;
  random_words(mask.rows.seed, place, block, words);
  for (int64_t i = 0; i < 4 * kLanes; ++i) {
    out[i] = (words[i] & 0xFFFF) >= mask.threshold ? mask.scale : 0.0F;
    out[4 * kLanes + i] = (words[i] >> 16) >= mask.threshold ? mask.scale : 0.0F;
  }
}

/// out = y ⊙ factors, or x + y ⊙ factors if x is not null, for the elements [begin, end) of a stretch; begin
/// is a multiple of kBlock.
ZOO_VECTOR_KERNEL void apply_blocks(const DropoutMask& mask, uint64_t place, const float* x, const float* y,
                                    float* out, int64_t begin, int64_t end) {
  float factor[kBlock];
  for (int64_t at = begin; at < end; at += kBlock) {
    factors(mask, place, static_cast<uint64_t>(at / kBlock), factor);
    const int64_t n = std::min(kBlock, end - at);
    if (n == kBlock && x != nullptr) {
      for (int64_t i = 0; i < kBlock; ++i) out[at + i] = x[at + i] + y[at + i] * factor[i];
    } else if (n == kBlock) {
      for (int64_t i = 0; i < kBlock; ++i) out[at + i] = y[at + i] * factor[i];
    } else {
      for (int64_t i = 0; i < n; ++i) out[at + i] = (x != nullptr ? x[at + i] : 0.0F) + y[at + i] * factor[i];
    }
  }
}

/// y ⊙ factors, plus x if it is defined, in float.
torch::Tensor apply_mask_float(const DropoutMask& mask, const torch::Tensor& x, const torch::Tensor& y) {
  auto out = torch::empty_like(y, torch::MemoryFormat::Contiguous);
  const float* const addend = x.defined() ? x.const_data_ptr<float>() : nullptr;
  const float* const values = y.const_data_ptr<float>();
  float* const result = out.mutable_data_ptr<float>();
  const Stretches stretches(y);
  const int64_t n_blocks = stretches.blocks();
  constexpr int64_t grain = 128;  // blocks; with fewer, a second thread costs more than it saves
  at::parallel_for(0, stretches.count * n_blocks, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t stretch = begin / n_blocks, first = begin % n_blocks,
                    last = std::min(first + end - begin, n_blocks), offset = stretch * stretches.length;
      apply_blocks(mask, stretches.place(stretch, mask.rows.first_row),
                   addend != nullptr ? addend + offset : nullptr, values + offset, result + offset,
                   first * kBlock, std::min(last * kBlock, stretches.length));
      begin += last - first;
    }
  });
  return out;
}

torch::Tensor apply_mask(const DropoutMask& mask, const torch::Tensor& x, const torch::Tensor& y) {
  if (y.scalar_type() == torch::kFloat && (!x.defined() || x.scalar_type() == torch::kFloat))
    return apply_mask_float(mask, x.defined() ? x.contiguous() : x, y.contiguous());
  const auto factors = apply_mask_float(mask, {}, torch::ones(y.sizes(), torch::kFloat));
  const auto kept = y * factors.to(y.scalar_type());
  return x.defined() ? x + kept : kept;
}

struct AddDropout : torch::autograd::Function<AddDropout> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& y,
                               double p, const RowSeed& rows) {
    context->saved_data["seed"] = static_cast<int64_t>(rows.seed);
    context->saved_data["first_row"] = rows.first_row;
    context->saved_data["p"] = p;
    return apply_mask(mask_of(rows, p), x, y);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("dropout");
    const RowSeed rows{.seed = static_cast<uint64_t>(context->saved_data["seed"].toInt()),
                       .first_row = context->saved_data["first_row"].toInt()};
    const auto mask = mask_of(rows, context->saved_data["p"].toDouble());
    return {gradients[0], apply_mask(mask, {}, gradients[0]), {}, {}};
  }
};

struct Dropout : torch::autograd::Function<Dropout> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, double p,
                               const RowSeed& rows) {
    return AddDropout::forward(context, {}, x, p, rows);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    return {AddDropout::backward(context, gradients)[1], {}, {}};
  }
};

}  // namespace

torch::Tensor dropout(const torch::Tensor& x, double p) {
  if (p == 0) return x;
  return x.is_cpu() ? dropout(x, p, draw_row_seed()) : torch::dropout(x, p, /*train=*/true);
}

torch::Tensor dropout(const torch::Tensor& x, double p, const RowSeed& seed) {
  if (p == 0) return x;
  return x.is_cpu() ? Dropout::apply(x, p, seed) : torch::dropout(x, p, /*train=*/true);
}

torch::Tensor add_dropout(const torch::Tensor& x, const torch::Tensor& y, double p) {
  if (p == 0) return x + y;
  return x.is_cpu() && x.sizes() == y.sizes() ? AddDropout::apply(x, y, p, draw_row_seed())
                                              : x + dropout(y, p);
}

}  // namespace zoo

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

// One call of the generator for 16 counters at a time gives 128 numbers of 16 bits: the elements of one
// block.
constexpr int64_t kLanes = 16;
constexpr int64_t kBlock = kLanes * 8;

using Words = std::array<uint32_t, 4 * kLanes>;

ZOO_INLINE void random_words(uint64_t seed, uint64_t block, Words& words) {
  constexpr uint32_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
  constexpr uint32_t weyl0 = 0x9E3779B9, weyl1 = 0xBB67AE85;
  constexpr int rounds = 7;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    const uint64_t counter = block * kLanes + static_cast<uint64_t>(lane);
    auto c0 = static_cast<uint32_t>(counter), c1 = static_cast<uint32_t>(counter >> 32);
    uint32_t c2 = 0, c3 = 0;
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

/// What is dropped: 16 random bits below `threshold`.
struct Choice {
  uint64_t seed;
  uint32_t threshold;
  float scale;
};

Choice choice_of(uint64_t seed, double p) {
  TORCH_CHECK(p >= 0 && p <= 1, "the probability of dropout must be in 0 … 1, not ", p);
  const auto threshold = static_cast<uint32_t>(std::lround(p * 65536));
  return {seed, threshold, threshold == 65536 ? 0.0F : 65536.0F / static_cast<float>(65536 - threshold)};
}

ZOO_INLINE void factors(const Choice& choice, uint64_t block, float* out) {
  Words words;
  random_words(choice.seed, block, words);
  for (int64_t i = 0; i < 4 * kLanes; ++i) {
    out[i] = (words[i] & 0xFFFF) >= choice.threshold ? choice.scale : 0.0F;
    out[4 * kLanes + i] = (words[i] >> 16) >= choice.threshold ? choice.scale : 0.0F;
  }
}

/// out = y ⊙ factors, or x + y ⊙ factors where there is an x, for the elements [begin, end) of a tensor;
/// begin is a multiple of the block's size.
ZOO_VECTOR_KERNEL void apply(const Choice& choice, const float* x, const float* y, float* out, int64_t begin,
                             int64_t end) {
  float factor[kBlock];
  for (int64_t at = begin; at < end; at += kBlock) {
    factors(choice, static_cast<uint64_t>(at / kBlock), factor);
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

/// y ⊙ factors (+ x), in float.
torch::Tensor applied_in_float(const Choice& choice, const torch::Tensor& x, const torch::Tensor& y) {
  auto out = torch::empty_like(y, torch::MemoryFormat::Contiguous);
  const float* const addend = x.defined() ? x.const_data_ptr<float>() : nullptr;
  const float* const values = y.const_data_ptr<float>();
  float* const result = out.mutable_data_ptr<float>();
  const int64_t n = y.numel(), n_blocks = (n + kBlock - 1) / kBlock;
  constexpr int64_t grain = 128;  // blocks; below this a second thread costs more than it helps
  at::parallel_for(0, n_blocks, grain, [&](int64_t begin, int64_t end) {
    apply(choice, addend, values, result, begin * kBlock, std::min(end * kBlock, n));
  });
  return out;
}

torch::Tensor applied(const Choice& choice, const torch::Tensor& x, const torch::Tensor& y) {
  if (y.scalar_type() == torch::kFloat && (!x.defined() || x.scalar_type() == torch::kFloat))
    return applied_in_float(choice, x.defined() ? x.contiguous() : x, y.contiguous());
  const auto factors = applied_in_float(choice, {}, torch::ones(y.sizes(), torch::kFloat));
  const auto kept = y * factors.to(y.scalar_type());
  return x.defined() ? x + kept : kept;
}

struct AddDropout : torch::autograd::Function<AddDropout> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& y,
                               double p) {
    const uint64_t seed = draw_seed();
    context->saved_data["seed"] = static_cast<int64_t>(seed);
    context->saved_data["p"] = p;
    return applied(choice_of(seed, p), x, y);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("dropout");
    const auto seed = static_cast<uint64_t>(context->saved_data["seed"].toInt());
    const auto choice = choice_of(seed, context->saved_data["p"].toDouble());
    return {gradients[0], applied(choice, {}, gradients[0]), {}};
  }
};

struct Dropout : torch::autograd::Function<Dropout> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, double p) {
    return AddDropout::forward(context, {}, x, p);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    return {AddDropout::backward(context, gradients)[1], {}};
  }
};

}  // namespace

torch::Tensor dropout(const torch::Tensor& x, double p) {
  if (p == 0) return x;
  return x.is_cpu() ? Dropout::apply(x, p) : torch::dropout(x, p, /*train=*/true);
}

torch::Tensor add_dropout(const torch::Tensor& x, const torch::Tensor& y, double p) {
  if (p == 0) return x + y;
  return x.is_cpu() && x.sizes() == y.sizes() ? AddDropout::apply(x, y, p) : x + dropout(y, p);
}

}  // namespace zoo

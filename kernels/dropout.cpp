#include "kernels/dropout.h"

#include <algorithm>
#include <cmath>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "base/random.h"
#include "kernels/first_derivative.h"
#include "kernels/gpu_dropout.h"
#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

DropoutMask mask_of(const RowSeed& rows, double p) {
  const auto [threshold, scale] = dropout_rule(p);
  return {rows.seed, threshold, scale};
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
  int64_t blocks() const { return (length + kDropoutBlock - 1) / kDropoutBlock; }
  uint64_t place(int64_t stretch, int64_t first_row) const {
    return static_cast<uint64_t>(stretch % n_heads) << 32 |
           static_cast<uint32_t>(first_row + stretch / n_heads);
  }
};

/// y ⊙ factors, plus x if it is defined, in float.
torch::Tensor apply_mask_float(const RowSeed& rows, double p, const torch::Tensor& x,
                               const torch::Tensor& y) {
  auto out = torch::empty_like(y, torch::MemoryFormat::Contiguous);
  const float* const addend = x.defined() ? x.const_data_ptr<float>() : nullptr;
  const float* const values = y.const_data_ptr<float>();
  float* const result = out.mutable_data_ptr<float>();
  const auto mask = mask_of(rows, p);
  const Stretches stretches(y);
  const int64_t n_blocks = stretches.blocks();
  constexpr int64_t grain = 128;  // blocks; with fewer, a second thread costs more than it saves
  at::parallel_for(0, stretches.count * n_blocks, grain, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t stretch = begin / n_blocks, first = begin % n_blocks,
                    last = std::min(first + end - begin, n_blocks), offset = stretch * stretches.length;
      kernels().dropout(mask, stretches.place(stretch, rows.first_row),
                        addend != nullptr ? addend + offset : nullptr, values + offset, result + offset,
                        first * kDropoutBlock, std::min(last * kDropoutBlock, stretches.length));
      begin += last - first;
    }
  });
  return out;
}

torch::Tensor apply_mask(const RowSeed& rows, double p, const torch::Tensor& x, const torch::Tensor& y) {
  if (y.scalar_type() == torch::kFloat && (!x.defined() || x.scalar_type() == torch::kFloat))
    return apply_mask_float(rows, p, x.defined() ? x.contiguous() : x, y.contiguous());
  const auto factors = apply_mask_float(rows, p, {}, torch::ones(y.sizes(), torch::kFloat));
  const auto kept = y * factors.to(y.scalar_type());
  return x.defined() ? x + kept : kept;
}

struct AddDropout : torch::autograd::Function<AddDropout> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& y,
                               double p, const RowSeed& rows) {
    context->saved_data["seed"] = static_cast<int64_t>(rows.seed);
    context->saved_data["first_row"] = rows.first_row;
    context->saved_data["p"] = p;
    return apply_mask(rows, p, x, y);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("dropout");
    const RowSeed rows{.seed = static_cast<uint64_t>(context->saved_data["seed"].toInt()),
                       .first_row = context->saved_data["first_row"].toInt()};
    return {gradients[0], apply_mask(rows, context->saved_data["p"].toDouble(), {}, gradients[0]), {}, {}};
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

DropoutRule dropout_rule(double p) {
  TORCH_CHECK(p >= 0 && p <= 1, "the probability of dropout must be in 0 … 1, not ", p);
  const auto threshold = static_cast<uint32_t>(std::lround(p * 65536));
  return {threshold, threshold == 65536 ? 0.0F : 65536.0F / static_cast<float>(65536 - threshold)};
}

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
  if (x.is_cpu() && x.sizes() == y.sizes()) return AddDropout::apply(x, y, p, draw_row_seed());
  const auto sum = gpu_add_dropout(x, y, p);
  return sum ? *sum : x + dropout(y, p);
}

}  // namespace zoo

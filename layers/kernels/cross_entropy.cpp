#include "layers/kernels/cross_entropy.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "layers/kernels/first_derivative.h"
#include "layers/kernels/grain.h"
#include "layers/kernels/isa/kernels.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

/// Replaces the logits, contiguous float (N, V), by their gradient; returns the loss.
double loss_in_place(const torch::Tensor& logits, const torch::Tensor& targets,
                     const CrossEntropyOptions& options) {
  const int64_t n = logits.size(0), v = logits.size(1);
  float* const rows = logits.mutable_data_ptr<float>();
  const auto indices = targets.contiguous();
  const int64_t* const classes = indices.const_data_ptr<int64_t>();
  TORCH_CHECK(std::all_of(classes, classes + n, [v](int64_t c) { return c >= 0 && c < v; }),
              "cross_entropy_sum: every target must be a class in 0 … ", v - 1);
  std::vector<double> losses(static_cast<size_t>(n));
  at::parallel_for(0, n, grain_rows(v), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      losses[static_cast<size_t>(i)] =
          kernels().cross_entropy(rows + i * v, v, classes[i], options.label_smoothing, options.weight);
  });
  double total = 0;
  for (const double loss : losses) total += loss;
  return total;
}

struct CrossEntropy : torch::autograd::Function<CrossEntropy> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& logits,
                               const torch::Tensor& targets, const CrossEntropyOptions& options) {
    auto gradient = logits.contiguous();
    const double loss = loss_in_place(gradient, targets, options);
    // Autograd now throws if another operation saved the logits for its backward pass.
    gradient.unsafeGetTensorImpl()->bump_version();
    context->saved_data["gradient"] = gradient;
    return torch::full({}, loss, gradient.options().requires_grad(false));
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("the cross-entropy");
    const auto gradient = context->saved_data["gradient"].toTensor();
    const double factor = gradients[0].item<double>();
    return {factor == 1.0 ? gradient : gradient * factor, {}, {}};
  }
};

}  // namespace

torch::Tensor cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& targets,
                                const CrossEntropyOptions& options) {
  const auto values = logits.to(torch::kFloat);
  TORCH_CHECK(values.dim() == 2 && targets.sizes() == values.sizes().slice(0, 1),
              "cross_entropy_sum needs logits (N, V) and targets (N), not ", values.sizes(), " and ",
              targets.sizes());
  if (values.is_cpu() && values.requires_grad() && torch::GradMode::is_enabled() && values.numel() > 0)
    return CrossEntropy::apply(values, targets, options);
  constexpr int64_t ignore_nothing = std::numeric_limits<int64_t>::min();
  return at::cross_entropy_loss(values, targets, /*weight=*/{}, at::Reduction::Sum, ignore_nothing,
                                options.label_smoothing) *
         options.weight;
}

}  // namespace zoo

#include "kernels/cross_entropy.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "kernels/first_derivative.h"
#include "kernels/gpu/cross_entropy_kernel.h"
#include "kernels/grain.h"
#include "kernels/isa/kernels.h"

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

/// The same for logits of any type on any device, by LibTorch's operations: the logarithms of the
/// probabilities, in float, become the gradient in their own memory.
LossWithGradient loss_by_operations(const torch::Tensor& logits, const torch::Tensor& targets,
                                    const CrossEntropyOptions& options) {
  const double smoothing = options.label_smoothing, v = static_cast<double>(logits.size(1));
  const auto type = logits.scalar_type();
  const bool reads_half = logits.is_cuda() && type == torch::kHalf;  // LibTorch's kernel reads no bfloat16
  auto values = reads_half ? at::_log_softmax(logits, 1, /*half_to_float=*/true)
                           : at::_log_softmax(logits.to(torch::kFloat), 1, /*half_to_float=*/false);
  const auto classes = targets.unsqueeze(1);
  const auto of_targets = values.gather(1, classes);
  auto loss = of_targets.sum() * (-(1 - smoothing) * options.weight);
  if (smoothing > 0) loss = loss - values.sum() * (smoothing / v * options.weight);
  values.exp_();
  values.scatter_(1, classes, of_targets.exp() - (1 - smoothing));
  if (smoothing > 0) values.sub_(smoothing / v);
  if (type == torch::kFloat) return {.loss = loss, .gradient = values.mul_(options.weight)};
  auto gradient = logits;
  at::mul_out(gradient, values, torch::scalar_tensor(options.weight, torch::kDouble));
  return {.loss = loss, .gradient = gradient};
}

LossWithGradient loss_on_a_device(const torch::Tensor& logits, const torch::Tensor& targets,
                                  const CrossEntropyOptions& options) {
  static const CrossEntropyInPlace reference = [](const torch::Tensor& rows, const torch::Tensor& classes,
                                                  double smoothing, double weight) {
    const auto result = loss_by_operations(rows, classes, {.label_smoothing = smoothing, .weight = weight});
    if (!result.gradient.is_same(rows)) rows.copy_(result.gradient);
    return result.loss;
  };
  const auto* const program =
      logits.is_contiguous() ? cross_entropy_program(logits.device(), reference) : nullptr;
  if (program == nullptr) return loss_by_operations(logits, targets, options);
  const auto losses = cross_entropy_by(*program, logits, targets, options.label_smoothing, options.weight);
  return {.loss = losses.sum(), .gradient = logits};
}

struct CrossEntropy : torch::autograd::Function<CrossEntropy> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& logits,
                               const torch::Tensor& targets, const CrossEntropyOptions& options) {
    const auto [loss, gradient] = cross_entropy_with_gradient(logits, targets, options);
    context->saved_data["gradient"] = gradient;
    return loss;
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("the cross-entropy");
    const auto gradient = context->saved_data["gradient"].toTensor();
    if (!gradient.is_cpu()) return {gradient.mul_(gradients[0]), {}, {}};  // its value would be waited for
    const double factor = gradients[0].item<double>();
    return {factor == 1.0 ? gradient : gradient * factor, {}, {}};
  }
};

void check_shapes(const torch::Tensor& logits, const torch::Tensor& targets) {
  TORCH_CHECK(logits.dim() == 2 && targets.sizes() == logits.sizes().slice(0, 1),
              "cross_entropy_sum needs logits (N, V) and targets (N), not ", logits.sizes(), " and ",
              targets.sizes());
}

}  // namespace

LossWithGradient cross_entropy_with_gradient(const torch::Tensor& logits, const torch::Tensor& targets,
                                             const CrossEntropyOptions& options) {
  check_shapes(logits, targets);
  const torch::NoGradGuard no_grad;
  if (logits.numel() == 0)
    return {.loss = torch::zeros({}, logits.options().dtype(torch::kFloat)),
            .gradient = torch::zeros_like(logits)};
  if (!logits.is_cpu()) return loss_on_a_device(logits.detach(), targets, options);
  auto gradient = logits.detach().to(torch::kFloat).contiguous();
  const double loss = loss_in_place(gradient, targets, options);
  // Autograd now throws if another operation saved the logits for its backward pass.
  gradient.unsafeGetTensorImpl()->bump_version();
  return {.loss = torch::full({}, loss, gradient.options()), .gradient = gradient.to(logits.scalar_type())};
}

torch::Tensor cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& targets,
                                const CrossEntropyOptions& options) {
  check_shapes(logits, targets);
  if (logits.requires_grad() && torch::GradMode::is_enabled() && logits.numel() > 0)
    return CrossEntropy::apply(logits.is_cpu() ? logits.to(torch::kFloat) : logits, targets, options);
  constexpr int64_t ignore_nothing = std::numeric_limits<int64_t>::min();
  return at::cross_entropy_loss(logits.to(torch::kFloat), targets, /*weight=*/{}, at::Reduction::Sum,
                                ignore_nothing, options.label_smoothing) *
         options.weight;
}

}  // namespace zoo

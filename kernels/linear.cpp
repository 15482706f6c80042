#include "kernels/linear.h"

#include <optional>
#include <string_view>

#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>

#include "kernels/first_derivative.h"
#include "kernels/isa/paths.h"
#include "kernels/linear_gradients.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

bool onednn_is_faster() {
#if defined(__x86_64__) && defined(__GNUC__)
  static const bool result =
      at::globalContext().userEnabledMkldnn() && !__builtin_cpu_is("intel") && has_path(CpuPath::avx512);
  return result;
#else
  return false;
#endif
}

/// x Wᵀ + b; W may be a transposed view.
torch::Tensor onednn_linear(const torch::Tensor& x, const torch::Tensor& weight,
                            const std::optional<torch::Tensor>& bias) {
  using Signature =
      torch::Tensor(const torch::Tensor&, const torch::Tensor&, const std::optional<torch::Tensor>&,
                    std::string_view, c10::List<std::optional<at::Scalar>>, std::optional<std::string_view>);
  static const auto kernel =
      c10::Dispatcher::singleton().findSchemaOrThrow("mkldnn::_linear_pointwise", "").typed<Signature>();
  return kernel.call(x, weight, bias, "none", c10::List<std::optional<at::Scalar>>(), "");
}

torch::Tensor gradient_of_weight(const torch::Tensor& gradient, const torch::Tensor& x) {
  if (has_weight_gradient(x)) return weight_gradient(gradient.contiguous(), x.contiguous());
  return gradient.t().mm(x);
}

torch::Tensor gradient_of_input(const torch::Tensor& gradient, const torch::Tensor& weight) {
  if (has_input_gradient(weight)) return input_gradient(gradient.contiguous(), weight);
  return onednn_linear(gradient, weight.t(), std::nullopt);
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const std::optional<torch::Tensor>& bias) {
    // Only the gradient of the weight needs x.
    context->save_for_backward({weight.requires_grad() ? x : torch::Tensor(), weight});
    context->saved_data["has_bias"] = bias.has_value();
    return onednn_linear(x, weight, bias);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("a linear layer");
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1];
    const auto rows = gradients[0].reshape({-1, weight.size(0)});  // (N, O)
    auto sizes = gradients[0].sizes().vec();
    sizes.back() = weight.size(1);
    Tensors result(3);
    if (context->needs_input_grad(0)) result[0] = gradient_of_input(rows, weight).view(sizes);
    if (context->needs_input_grad(1)) result[1] = gradient_of_weight(rows, x.reshape({-1, weight.size(1)}));
    if (context->saved_data["has_bias"].toBool() && context->needs_input_grad(2)) result[2] = rows.sum(0);
    return result;
  }
};

/// Only forward() reads the copy as such; backward() keeps it as the value that forward() has used.
struct RoundedLinear : torch::autograd::Function<RoundedLinear> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& weight,
                               const torch::Tensor& rounded, const std::optional<torch::Tensor>& bias) {
    context->save_for_backward({weight.requires_grad() ? x : torch::Tensor(), rounded});
    context->saved_data["has_bias"] = bias.has_value();
    return at::linear(x, rounded, bias ? std::make_optional(bias->to(rounded.scalar_type())) : std::nullopt);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("a linear layer");
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &rounded = saved[1];
    const auto rows = gradients[0].reshape({-1, rounded.size(0)});  // (N, O)
    auto sizes = gradients[0].sizes().vec();
    sizes.back() = rounded.size(1);
    Tensors result(4);
    if (context->needs_input_grad(0)) result[0] = rows.mm(rounded).view(sizes);
    if (context->needs_input_grad(1))
      result[1] = rows.t().mm(x.reshape({-1, rounded.size(1)})).to(torch::kFloat);
    if (context->saved_data["has_bias"].toBool() && context->needs_input_grad(3))
      result[3] = rows.sum(0, /*keepdim=*/false, torch::kFloat);
    return result;
  }
};

}  // namespace

torch::Tensor rounded_linear(const torch::Tensor& x, const torch::Tensor& weight,
                             const torch::Tensor& rounded, const torch::Tensor& bias) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return RoundedLinear::apply(x.to(rounded.scalar_type()), weight, rounded,
                              bias.defined() ? std::make_optional(bias) : std::nullopt);
}

torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  constexpr int64_t min_rows = 32;  // with fewer, the call costs more than the gemm
  const bool suits = x.is_cpu() && x.scalar_type() == torch::kFloat &&
                     weight.scalar_type() == torch::kFloat && weight.is_contiguous() &&
                     x.numel() >= min_rows * x.size(-1) && !at::autocast::is_autocast_enabled(at::kCPU);
  if (!suits || !onednn_is_faster()) return torch::linear(x, weight, bias);
  return LinearFunction::apply(x, weight, bias.defined() ? std::make_optional(bias) : std::nullopt);
}

}  // namespace zoo

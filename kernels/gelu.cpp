#include "kernels/gelu.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/utils.h>

#include "kernels/first_derivative.h"
#include "kernels/grain.h"
#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

/// Writes `slope` if it is defined.
torch::Tensor evaluate(const torch::Tensor& any, Phi phi, const torch::Tensor& slope = {}) {
  const auto x = any.contiguous();
  auto y = torch::empty_like(x);
  const float* const from = x.const_data_ptr<float>();
  float* const to = y.mutable_data_ptr<float>();
  float* const slopes = slope.defined() ? slope.mutable_data_ptr<float>() : nullptr;
  const auto loop = phi == Phi::exact ? kernels().gelu_exact : kernels().gelu_by_tanh;
  at::parallel_for(0, x.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
    loop(from + begin, to + begin, slopes ? slopes + begin : nullptr, end - begin);
  });
  return y;
}

struct Gelu : torch::autograd::Function<Gelu> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, Phi phi) {
    const auto slope = torch::empty(x.sizes(), x.options());
    context->save_for_backward({slope});
    return evaluate(x, phi, slope);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("GELU");
    return {gradients[0] * context->get_saved_variables()[0], torch::Tensor()};
  }
};

}  // namespace

torch::Tensor gelu(const torch::Tensor& x, Phi phi) {
  if (!x.is_cpu() || x.scalar_type() != torch::kFloat)
    return torch::gelu(x, phi == Phi::exact ? "none" : "tanh");
  return torch::GradMode::is_enabled() && x.requires_grad() ? Gelu::apply(x, phi) : evaluate(x, phi);
}

}  // namespace zoo

#include "kernels/swiglu.h"

#include <optional>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/utils.h>

#include "kernels/first_derivative.h"
#include "kernels/gpu_gate.h"
#include "kernels/grain.h"
#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

/// Gate and up are either two tensors or the halves of one; then `up` is missing.
struct Swiglu : torch::autograd::Function<Swiglu> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& gate_any,
                               const std::optional<torch::Tensor>& up_any) {
    const bool halves = !up_any;
    const auto gate = gate_any.contiguous(), up = halves ? torch::Tensor() : up_any->contiguous();
    context->save_for_backward({gate, up});
    auto sizes = gate.sizes().vec();
    if (halves) sizes.back() /= 2;
    auto out = torch::empty(sizes, gate.options());
    const int64_t width = sizes.back(), n_rows = out.numel() / width, row = halves ? 2 * width : width;
    const float* const g = gate.const_data_ptr<float>();
    const float* const u = halves ? g + width : up.const_data_ptr<float>();
    float* const o = out.mutable_data_ptr<float>();
    at::parallel_for(0, n_rows, grain_rows(width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) kernels().swiglu(g + i * row, u + i * row, o + i * width, width);
    });
    return out;
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("SwiGLU");
    const auto saved = context->get_saved_variables();
    const auto &gate = saved[0], &up = saved[1];
    const bool halves = !up.defined();
    const auto gradient = gradients[0].contiguous();
    auto gate_gradient = torch::empty_like(gate),
         up_gradient = halves ? torch::Tensor() : torch::empty_like(up);
    const int64_t width = gradient.size(-1), n_rows = gradient.numel() / width, row = gate.size(-1);
    const float *const g = gate.const_data_ptr<float>(), *const d = gradient.const_data_ptr<float>();
    const float* const u = halves ? g + width : up.const_data_ptr<float>();
    float* const to_g = gate_gradient.mutable_data_ptr<float>();
    float* const to_u = halves ? to_g + width : up_gradient.mutable_data_ptr<float>();
    at::parallel_for(0, n_rows, grain_rows(width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        kernels().swiglu_backward(g + i * row, u + i * row, d + i * width, to_g + i * row, to_u + i * row,
                                  width);
    });
    return {gate_gradient, up_gradient};
  }
};

bool suits(const torch::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat && x.dim() > 0 && x.numel() > 0;
}

}  // namespace

torch::Tensor swiglu(const torch::Tensor& gate, const torch::Tensor& up) {
  if (suits(gate) && suits(up) && gate.sizes() == up.sizes())
    return Swiglu::apply(gate, std::make_optional(up));
  if (auto y = gpu_gated(GateFunction::silu, gate, up)) return *y;
  return torch::silu(gate) * up;
}

torch::Tensor swiglu(const torch::Tensor& gate_up) {
  TORCH_CHECK(gate_up.dim() > 0 && gate_up.size(-1) % 2 == 0,
              "swiglu needs a last dimension of even size (gate, up), not a tensor of shape ",
              gate_up.sizes());
  if (suits(gate_up)) return Swiglu::apply(gate_up, std::optional<torch::Tensor>());
  if (auto y = gpu_gated(GateFunction::silu, gate_up)) return *y;
  const auto halves = gate_up.chunk(2, -1);
  return torch::silu(halves[0]) * halves[1];
}

}  // namespace zoo

#include "kernels/cpu_rotary.h"

#include <algorithm>

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

/// Rotates x (B, H, T, Dh), or rotates it back. cos, sin: (B or 1, 1, T, R/2).
torch::Tensor rotate(const torch::Tensor& x, const torch::Tensor& cos, const torch::Tensor& sin,
                     RotaryLayout layout, float direction) {
  auto y = torch::empty_like(x);
  const int64_t n_heads = x.size(1), length = x.size(2), width = x.size(3), n_pairs = cos.size(-1);
  const auto rotate_row =
      layout == RotaryLayout::half ? kernels().rotate_halves : kernels().rotate_interleaved;
  const float* const from = x.const_data_ptr<float>();
  float* const to = y.mutable_data_ptr<float>();
  const float *const c = cos.const_data_ptr<float>(), *const s = sin.const_data_ptr<float>();
  const int64_t table_batch = cos.size(0) == 1 ? 0 : length * n_pairs;
  const int64_t x_b = x.stride(0), x_h = x.stride(1), x_t = x.stride(2);
  const int64_t y_b = y.stride(0), y_h = y.stride(1), y_t = y.stride(2);
  // All heads of a position are processed one after the other: they share the angles and are adjacent in
  // memory.
  at::parallel_for(0, x.size(0) * length, grain_rows(n_heads * width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t b = row / length, t = row % length, angles = b * table_batch + t * n_pairs;
      for (int64_t h = 0; h < n_heads; ++h) {
        const float* const in = from + b * x_b + h * x_h + t * x_t;
        float* const out = to + b * y_b + h * y_h + t * y_t;
        rotate_row(in, c + angles, s + angles, direction, out, n_pairs);
        std::copy(in + 2 * n_pairs, in + width, out + 2 * n_pairs);
      }
    }
  });
  return y;
}

struct CpuRotary : torch::autograd::Function<CpuRotary> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const torch::Tensor& cos,
                               const torch::Tensor& sin, RotaryLayout layout) {
    context->save_for_backward({cos, sin});
    context->saved_data["layout"] = static_cast<int64_t>(layout);
    return rotate(x, cos, sin, layout, 1);
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("rotary embedding");
    const auto saved = context->get_saved_variables();
    const auto layout = static_cast<RotaryLayout>(context->saved_data["layout"].toInt());
    const auto& gradient = gradients[0].stride(-1) == 1 ? gradients[0] : gradients[0].contiguous();
    return {rotate(gradient, saved[0], saved[1], layout, -1), {}, {}, {}};
  }
};

/// (B or 1, 1, T, R/2), contiguous.
torch::Tensor with_batch(const torch::Tensor& table) {
  return (table.dim() == 2 ? table.unsqueeze(0).unsqueeze(0) : table).contiguous();
}

}  // namespace

bool has_cpu_rotary(const torch::Tensor& x, const RotaryAngles& angles) {
  return x.is_cpu() && x.scalar_type() == torch::kFloat && angles.cos.scalar_type() == torch::kFloat &&
         x.dim() == 4 && x.stride(-1) == 1 && x.numel() > 0;
}

torch::Tensor cpu_rotary(const torch::Tensor& x, const RotaryAngles& angles) {
  const auto cos = with_batch(angles.cos), sin = with_batch(angles.sin);
  TORCH_CHECK((cos.size(0) == 1 || cos.size(0) == x.size(0)) && cos.size(2) == x.size(2) &&
                  2 * cos.size(3) <= x.size(3) && sin.sizes() == cos.sizes(),
              "cpu_rotary: angles of shape ", cos.sizes(), " do not fit an input of shape ", x.sizes());
  return CpuRotary::apply(x, cos, sin, angles.layout);
}

}  // namespace zoo

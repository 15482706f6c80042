#include "kernels/rms_norm.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/first_derivative.h"
#include "kernels/grain.h"
#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

/// How many parts the rows are divided into, for work in parallel. It does not depend on the number of
/// threads, so that the sums over the rows do not either.
int64_t n_parts_of(int64_t n_rows, int64_t width) {
  constexpr int64_t max_parts = 64;
  return std::clamp<int64_t>(n_rows * width / kGrainSize, 1, max_parts);
}

/// Calls body(part, begin, end) for each part of the rows.
template <typename Body>
void for_each_part(int64_t n_parts, int64_t n_rows, const Body& body) {
  at::parallel_for(0, n_parts, 1, [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part)
      body(part, part * n_rows / n_parts, (part + 1) * n_rows / n_parts);
  });
}

struct RmsNorm : torch::autograd::Function<RmsNorm> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x_any,
                               const torch::Tensor& gain_any, double eps) {
    const auto x = x_any.contiguous(), gain = gain_any.contiguous();
    const int64_t width = x.size(-1), n_rows = x.numel() / width;
    auto y = torch::empty_like(x), scales = torch::empty({n_rows}, x.options());
    const float *const in = x.const_data_ptr<float>(), *const factors = gain.const_data_ptr<float>();
    float *const out = y.mutable_data_ptr<float>(), *const scale = scales.mutable_data_ptr<float>();
    for_each_part(n_parts_of(n_rows, width), n_rows, [&](int64_t, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        scale[i] = kernels().rms_norm(in + i * width, factors, out + i * width, width, eps);
    });
    context->save_for_backward({x, gain, scales});
    return y;
  }

  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("RMSNorm");
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &gain = saved[1];
    const auto gradient = gradients[0].contiguous();
    const int64_t width = x.size(-1), n_rows = x.numel() / width, n_parts = n_parts_of(n_rows, width);
    auto x_gradient = torch::empty_like(x), gain_gradient = torch::zeros({n_parts, width}, x.options());
    const float *const in = x.const_data_ptr<float>(), *const factors = gain.const_data_ptr<float>();
    const float* const out = gradient.const_data_ptr<float>();
    const float* const scale = saved[2].const_data_ptr<float>();
    float* const to_x = x_gradient.mutable_data_ptr<float>();
    float* const to_gain = gain_gradient.mutable_data_ptr<float>();
    for_each_part(n_parts, n_rows, [&](int64_t part, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        kernels().rms_norm_backward(in + i * width, factors, out + i * width, scale[i], to_x + i * width,
                                    to_gain + part * width, width);
    });
    return {x_gradient, gain_gradient.sum(0), {}};
  }
};

}  // namespace

torch::Tensor rms_norm(const torch::Tensor& input, const torch::Tensor& gain, double eps) {
  // Under mixed precision x may have 16 bits. Fused kernels take x and gain of one type: the norm is computed
  // in the gain's type.
  const auto x = input.to(gain.scalar_type());
  const bool suits = x.is_cpu() && x.scalar_type() == torch::kFloat && gain.scalar_type() == torch::kFloat &&
                     x.dim() > 0 && x.numel() > 0 && gain.sizes() == x.sizes().slice(x.dim() - 1);
  if (suits) return RmsNorm::apply(x, gain, eps);
  return torch::rms_norm(x, gain.sizes(), gain, eps);
}

}  // namespace zoo

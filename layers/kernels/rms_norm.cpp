#include "layers/kernels/rms_norm.h"

#include <algorithm>
#include <cmath>

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/kernels/first_derivative.h"
#include "layers/kernels/row_kernels.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

/// Σ x·y
ZOO_INLINE double sum_of_products(const float* x, const float* y, int64_t n) {
  return row_sum(n, [x, y](int64_t i) ZOO_INLINED { return x[i] * y[i]; });
}

/// y := γ ⊙ x · s for one row, s = 1/√(mean(x²)+ε); returns s.
ZOO_VECTOR_KERNEL float normalise(const float* x, const float* gain, float* y, int64_t n, double eps) {
  const double mean = sum_of_products(x, x, n) / static_cast<double>(n);
  const auto scale = static_cast<float>(1 / std::sqrt(mean + eps));
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * gain[i];
  return scale;
}

/// The gradients of one row: of x, and what it adds to that of γ. With h = γ ⊙ ∂y that of x is
/// s·(h - x · s² · mean(h ⊙ x)).
ZOO_VECTOR_KERNEL void differentiate(const float* x, const float* gain, const float* gradient, float scale,
                                     float* of_x, float* of_gain, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    of_gain[i] += gradient[i] * x[i] * scale;
    of_x[i] = gradient[i] * gain[i];
  }
  const double mean = sum_of_products(of_x, x, n) / static_cast<double>(n);
  const auto along = static_cast<float>(mean * static_cast<double>(scale) * static_cast<double>(scale));
  for (int64_t i = 0; i < n; ++i) of_x[i] = scale * (of_x[i] - x[i] * along);
}

/// In how many parts the rows are worked on at the same time. It says nothing of threads: the sums over the
/// rows are the same with any number of them.
int64_t n_parts_of(int64_t n_rows, int64_t width) {
  constexpr int64_t most_parts = 64;
  return std::clamp<int64_t>(n_rows * width / kFewestNumbers, 1, most_parts);
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
        scale[i] = normalise(in + i * width, factors, out + i * width, width, eps);
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
    auto of_x = torch::empty_like(x), of_gain = torch::zeros({n_parts, width}, x.options());
    const float *const in = x.const_data_ptr<float>(), *const factors = gain.const_data_ptr<float>();
    const float *const out = gradient.const_data_ptr<float>(), *const scale =
                                                                   saved[2].const_data_ptr<float>();
    float *const to_x = of_x.mutable_data_ptr<float>(), *const to_gain = of_gain.mutable_data_ptr<float>();
    for_each_part(n_parts, n_rows, [&](int64_t part, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        differentiate(in + i * width, factors, out + i * width, scale[i], to_x + i * width,
                      to_gain + part * width, width);
    });
    return {of_x, of_gain.sum(0), {}};
  }
};

}  // namespace

torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& gain, double eps) {
  const bool suits = x.is_cpu() && x.scalar_type() == torch::kFloat && gain.scalar_type() == torch::kFloat &&
                     x.dim() > 0 && x.numel() > 0 && gain.sizes() == x.sizes().slice(x.dim() - 1);
  if (suits) return RmsNorm::apply(x, gain, eps);
  return torch::rms_norm(x, gain.sizes(), gain, eps);
}

}  // namespace zoo

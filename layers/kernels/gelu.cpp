#include "layers/kernels/gelu.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/utils.h>

#include "layers/kernels/first_derivative.h"
#include "layers/kernels/row_kernels.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

struct Point {
  float value, slope;
};

/// Φ to 1e-7 by Abramowitz & Stegun 7.1.26: erfc(z) ≈ e^(-z²)·P(1 / (1 + pz)) for z ≥ 0. The slope
/// Φ(x) + x·φ(x) needs the same e^(-x²/2), which is part of the normal density φ.
ZOO_INLINE Point exact(float x) {
  constexpr float inverse_sqrt_2 = 0.707106781F, inverse_sqrt_2_pi = 0.398942280F, p = 0.3275911F;
  const float e = exp_of_negative(-0.5F * x * x);
  const float t = 1 / (1 + p * inverse_sqrt_2 * (x < 0 ? -x : x));
  float tail = 1.061405429F;
  tail = tail * t - 1.453152027F;
  tail = tail * t + 1.421413741F;
  tail = tail * t - 0.284496736F;
  tail = tail * t + 0.254829592F;
  tail *= 0.5F * t * e;
  const float phi = x < 0 ? tail : 1 - tail;
  return {x * phi, phi + x * e * inverse_sqrt_2_pi};
}

/// (1 + tanh u) / 2 = σ(2u). It is 0 or 1 for x beyond ±10, where u might overflow; so x is clamped.
ZOO_INLINE Point by_tanh(float x) {
  constexpr float two_sqrt_2_by_pi = 1.59576912F, cubic = 0.044715F, far = 10;
  const float at_least = x < -far ? -far : x, b = at_least > far ? far : at_least;  // NaN stays NaN
  const float two_u = two_sqrt_2_by_pi * b * (1 + cubic * b * b);
  const float e = exp_of_negative(two_u < 0 ? two_u : -two_u);
  const float upper = 1 / (1 + e), lower = e * upper;  // σ(±2u)
  const float s = two_u < 0 ? lower : upper;
  return {x * s, s + b * lower * upper * two_sqrt_2_by_pi * (1 + 3 * cubic * b * b)};
}

template <Point (*point)(float)>
ZOO_INLINE void values(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = point(x[i]).value;
}
template <Point (*point)(float)>
ZOO_INLINE void values_and_slopes(const float* x, float* y, float* slope, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const auto at_x = point(x[i]);
    y[i] = at_x.value;
    slope[i] = at_x.slope;
  }
}

ZOO_VECTOR_KERNEL void exact_values(const float* x, float* y, int64_t n) { values<exact>(x, y, n); }
ZOO_VECTOR_KERNEL void tanh_values(const float* x, float* y, int64_t n) { values<by_tanh>(x, y, n); }
ZOO_VECTOR_KERNEL void exact_points(const float* x, float* y, float* slope, int64_t n) {
  values_and_slopes<exact>(x, y, slope, n);
}
ZOO_VECTOR_KERNEL void tanh_points(const float* x, float* y, float* slope, int64_t n) {
  values_and_slopes<by_tanh>(x, y, slope, n);
}

/// Writes `slope` if it is defined.
torch::Tensor evaluate(const torch::Tensor& any, Phi phi, const torch::Tensor& slope = {}) {
  const auto x = any.contiguous();
  auto y = torch::empty_like(x);
  const float* const from = x.const_data_ptr<float>();
  float* const to = y.mutable_data_ptr<float>();
  float* const slopes = slope.defined() ? slope.mutable_data_ptr<float>() : nullptr;
  at::parallel_for(0, x.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    if (slopes)
      (phi == Phi::exact ? exact_points : tanh_points)(from + begin, to + begin, slopes + begin, n);
    else
      (phi == Phi::exact ? exact_values : tanh_values)(from + begin, to + begin, n);
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

#pragma once
// Functions of rows of numbers. Sums process twice as many lanes at a time as the widest vectors have, so
// that an addition need not wait for the previous one.

#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

constexpr int64_t kRowLanes = 32;

/// Added to a float below 2^22 in magnitude, it rounds the float to a whole number: 1.5·2^23.
constexpr float kToInteger = 12582912.0F;

/// e^x for -87 ≤ x ≤ 0 to about 1e-7 (Cody & Waite 1980: 2^n · e^r, |r| ≤ ln 2 / 2). Without a call, so that
/// a loop over it vectorises. T is float, or a vector of floats with as many Bits.
template <class Bits, class T>
inline T exp_within_range(T x) {
  constexpr float log2_e = 1.44269504F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
  const T shifted = x * log2_e + kToInteger;
  const T n = shifted - kToInteger;
  const T r = (x - n * ln2_high) - n * ln2_low;
  T p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  // The compiler's own cast, because std::bit_cast is compiled without the instructions for such vectors.
  return __builtin_bit_cast(T, __builtin_bit_cast(Bits, p) + (__builtin_bit_cast(Bits, shifted) << 23));
}

/// The same for all x ≤ 0, of which NaN stays NaN.
inline float exp_of_negative(float x) {
  constexpr float least = -87.0F;
  return exp_within_range<uint32_t>(x < least ? least : x);
}

/// Σ term(i) for 0 ≤ i < n.
template <class Term>
inline double row_sum(int64_t n, const Term& term) {
  float lanes[kRowLanes] = {};
  int64_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes)
    for (int64_t j = 0; j < kRowLanes; ++j) lanes[j] += term(i + j);
  double result = 0;
  for (; i < n; ++i) result += static_cast<double>(term(i));
  for (const float lane : lanes) result += static_cast<double>(lane);
  return result;
}

/// The largest of n numbers; -∞ if n is 0.
inline float row_maximum(const float* x, int64_t n) {
  float lanes[kRowLanes];
  for (float& lane : lanes) lane = -std::numeric_limits<float>::infinity();
  int64_t i = 0;
  for (; i + kRowLanes <= n; i += kRowLanes)
    for (int64_t j = 0; j < kRowLanes; ++j) lanes[j] = lanes[j] > x[i + j] ? lanes[j] : x[i + j];
  float result = -std::numeric_limits<float>::infinity();
  for (; i < n; ++i) result = std::max(result, x[i]);
  for (const float lane : lanes) result = std::max(result, lane);
  return result;
}

struct Point {
  float value, slope;
};

/// GELU with Φ to 1e-7 by Abramowitz & Stegun 7.1.26: erfc(z) ≈ e^(-z²)·P(1 / (1 + pz)) for z ≥ 0. The slope
/// Φ(x) + x·φ(x) needs the same e^(-x²/2), which is part of the normal density φ.
inline Point exact(float x) {
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

/// GELU with (1 + tanh u) / 2 = σ(2u). It is 0 or 1 for x beyond ±10, where u might overflow; so x is
/// clamped.
inline Point by_tanh(float x) {
  constexpr float two_sqrt_2_by_pi = 1.59576912F, cubic = 0.044715F, far = 10;
  const float at_least = x < -far ? -far : x, b = at_least > far ? far : at_least;  // NaN stays NaN
  const float two_u = two_sqrt_2_by_pi * b * (1 + cubic * b * b);
  const float e = exp_of_negative(two_u < 0 ? two_u : -two_u);
  const float upper = 1 / (1 + e), lower = e * upper;  // σ(±2u)
  const float s = two_u < 0 ? lower : upper;
  return {x * s, s + b * lower * upper * two_sqrt_2_by_pi * (1 + 3 * cubic * b * b)};
}

template <Point (*point)(float)>
void gelu(const float* x, float* y, float* slope, int64_t n) {
  if (!slope) {
    for (int64_t i = 0; i < n; ++i) y[i] = point(x[i]).value;
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const auto at_x = point(x[i]);
    y[i] = at_x.value;
    slope[i] = at_x.slope;
  }
}

inline float sigmoid(float x) {
  const float e = exp_of_negative(x < 0 ? x : -x), positive = 1 / (1 + e);
  return x < 0 ? e * positive : positive;
}

void swiglu(const float* gate, const float* up, float* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = gate[i] * sigmoid(gate[i]) * up[i];
}

/// silu'(x) = σ(x)·(1 + x·(1 - σ(x)))
void swiglu_backward(const float* gate, const float* up, const float* gradient, float* gate_gradient,
                     float* up_gradient, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float x = gate[i], s = sigmoid(x), g = gradient[i];
    gate_gradient[i] = g * up[i] * s * (1 + x * (1 - s));
    up_gradient[i] = g * x * s;
  }
}

/// Σ x·y
inline double sum_of_products(const float* x, const float* y, int64_t n) {
  return row_sum(n, [x, y](int64_t i) { return x[i] * y[i]; });
}

float rms_norm(const float* x, const float* gain, float* y, int64_t n, double eps) {
  const double mean = sum_of_products(x, x, n) / static_cast<double>(n);
  const auto scale = static_cast<float>(1 / std::sqrt(mean + eps));
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * gain[i];
  return scale;
}

/// With h = γ ⊙ ∂y the gradient of x is s·(h - x · s² · mean(h ⊙ x)).
void rms_norm_backward(const float* x, const float* gain, const float* gradient, float scale,
                       float* x_gradient, float* gain_gradient, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    gain_gradient[i] += gradient[i] * x[i] * scale;
    x_gradient[i] = gradient[i] * gain[i];
  }
  const double mean = sum_of_products(x_gradient, x, n) / static_cast<double>(n);
  const auto along = static_cast<float>(mean * static_cast<double>(scale) * static_cast<double>(scale));
  for (int64_t i = 0; i < n; ++i) x_gradient[i] = scale * (x_gradient[i] - x[i] * along);
}

double cross_entropy(float* x, int64_t n_classes, int64_t target, double smoothing, double weight) {
  const auto v = static_cast<double>(n_classes);
  const double chosen = x[target],
               mean = smoothing > 0 ? row_sum(n_classes, [x](int64_t i) { return x[i]; }) / v : 0;
  const float highest = row_maximum(x, n_classes);
  const double total =
      row_sum(n_classes, [x, highest](int64_t i) { return x[i] = exp_of_negative(x[i] - highest); });
  const double log_total = highest + std::log(total);
  const auto factor = static_cast<float>(weight / total), off = static_cast<float>(weight * smoothing / v);
  for (int64_t i = 0; i < n_classes; ++i) x[i] = x[i] * factor - off;
  x[target] -= static_cast<float>(weight * (1 - smoothing));
  return weight *
         ((1 - smoothing) * (log_total - chosen) + (smoothing > 0 ? smoothing * (log_total - mean) : 0));
}

void rotate_halves(const float* x, const float* cos, const float* sin, float direction, float* y,
                   int64_t n_pairs) {
  for (int64_t i = 0; i < n_pairs; ++i) {
    const float a = x[i], b = x[n_pairs + i], s = direction * sin[i];
    y[i] = a * cos[i] - b * s;
    y[n_pairs + i] = b * cos[i] + a * s;
  }
}

void rotate_interleaved(const float* x, const float* cos, const float* sin, float direction, float* y,
                        int64_t n_pairs) {
  for (int64_t i = 0; i < n_pairs; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1], s = direction * sin[i];
    y[2 * i] = a * cos[i] - b * s;
    y[2 * i + 1] = b * cos[i] + a * s;
  }
}

void add(float* sum, const float* term, int64_t n) {
  for (int64_t i = 0; i < n; ++i) sum[i] += term[i];
}

void multiply(float* x, float factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
}

double sum_of_squares(const float* x, int64_t n) { return sum_of_products(x, x, n); }

}  // namespace
}  // namespace zoo

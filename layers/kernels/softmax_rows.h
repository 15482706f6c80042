#pragma once
// Operations on rows of attention scores, sixteen numbers at a time. `n` is a multiple of kVectorWidth.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "layers/kernels/gemm.h"

namespace zoo {

using IntegerVector = uint32_t __attribute__((vector_size(kVectorWidth * sizeof(uint32_t))));

ZOO_AVX512 ZOO_INLINE FloatVector& vector_at(float* x) { return *reinterpret_cast<FloatVector*>(x); }
ZOO_AVX512 ZOO_INLINE FloatVector vector_at(const float* x) {
  return *reinterpret_cast<const FloatVector*>(x);
}

template <int N>
ZOO_AVX512 ZOO_INLINE FloatVector rotate_lanes(FloatVector x) {
  return __builtin_shufflevector(x, x, N, N + 1, N + 2, N + 3, N + 4, N + 5, N + 6, N + 7, N + 8, N + 9,
                                 N + 10, N + 11, N + 12, N + 13, N + 14, N + 15);
}

ZOO_AVX512 ZOO_INLINE FloatVector maximum(FloatVector x, FloatVector y) { return x > y ? x : y; }

/// e^x for x ≤ 0 to about 1e-7, as in layers/kernels/row_kernels.h, but sixteen at a time, and 0 where e^x is
/// below 1e-37.
ZOO_AVX512 ZOO_INLINE FloatVector vector_exp_of_negative(FloatVector x) {
  constexpr float least = -85.0F, log2_e = 1.44269504F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
  const FloatVector shifted = x * log2_e + kToInteger;
  const FloatVector n = shifted - kToInteger;
  const FloatVector r = (x - n * ln2_high) - n * ln2_low;
  FloatVector p = r * 1.9875691500e-4F + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  const FloatVector result = (FloatVector)((IntegerVector)p + ((IntegerVector)shifted << 23));
  return x < least ? FloatVector{} : result;
}

ZOO_AVX512 ZOO_INLINE float row_max(const float* x, int64_t n) {
  FloatVector lanes = vector_at(x);
  for (int64_t i = kVectorWidth; i < n; i += kVectorWidth) lanes = maximum(lanes, vector_at(x + i));
  lanes = maximum(lanes, rotate_lanes<8>(lanes));
  lanes = maximum(lanes, rotate_lanes<4>(lanes));
  lanes = maximum(lanes, rotate_lanes<2>(lanes));
  return maximum(lanes, rotate_lanes<1>(lanes))[0];
}

ZOO_AVX512 ZOO_INLINE float sum(FloatVector lanes) {
  lanes += rotate_lanes<8>(lanes);
  lanes += rotate_lanes<4>(lanes);
  lanes += rotate_lanes<2>(lanes);
  lanes += rotate_lanes<1>(lanes);
  return lanes[0];
}

ZOO_AVX512 ZOO_INLINE float dot(const float* x, const float* y, int64_t n) {
  FloatVector lanes = {};
  for (int64_t i = 0; i < n; i += kVectorWidth) lanes += vector_at(x + i) * vector_at(y + i);
  return sum(lanes);
}

/// x := e^(scale·x - shift), at most 1 apart from rounding; returns the sum.
ZOO_AVX512 ZOO_INLINE float exponentials(float* x, int64_t n, float scale, float shift) {
  FloatVector lanes = {};
  for (int64_t i = 0; i < n; i += kVectorWidth) {
    const FloatVector result = vector_exp_of_negative(vector_at(x + i) * scale - shift);
    vector_at(x + i) = result;
    lanes += result;
  }
  return sum(lanes);
}

ZOO_AVX512 ZOO_INLINE void multiply(float* x, int64_t n, float factor) {
  for (int64_t i = 0; i < n; i += kVectorWidth) vector_at(x + i) *= factor;
}

/// Turns the gradient of the weights into the gradient of the scores: weight·(gradient - delta)·scale.
ZOO_AVX512 ZOO_INLINE void softmax_backward(float* gradient, const float* weights, int64_t n, float delta,
                                            float scale) {
  for (int64_t i = 0; i < n; i += kVectorWidth)
    vector_at(gradient + i) = vector_at(weights + i) * (vector_at(gradient + i) - delta) * scale;
}

}  // namespace zoo

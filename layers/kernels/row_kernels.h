#pragma once
// Operations on a row of floats that several kernels share. They process twice as many lanes at a time as the
// widest vectors have, so that an addition need not wait for the previous one.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "layers/kernels/vector_kernels.h"

namespace zoo {

inline constexpr int64_t kRowLanes = 32;

/// e^x for x ≤ 0 to about 1e-7 (Cody & Waite 1980: 2^n · e^r, |r| ≤ ln 2 / 2). Without a call, so that a loop
/// over it vectorises.
ZOO_INLINE float exp_of_negative(float x) {
  constexpr float least = -87.0F, log2_e = 1.44269504F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
  x = x < least ? least : x;  // NaN stays NaN
  const float shifted = x * log2_e + kToInteger;
  const float n = shifted - kToInteger;
  const float r = (x - n * ln2_high) - n * ln2_low;
  float p = 1.9875691500e-4F;
  p = p * r + 1.3981999507e-3F;
  p = p * r + 8.3334519073e-3F;
  p = p * r + 4.1665795894e-2F;
  p = p * r + 1.6666665459e-1F;
  p = p * r + 5.0000001201e-1F;
  p = p * r * r + r + 1.0F;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (std::bit_cast<uint32_t>(shifted) << 23));
}

/// Σ term(i) for 0 ≤ i < n. `term` must be inlined: [...](int64_t i) ZOO_INLINED { return ...; }
template <typename Term>
ZOO_INLINE double row_sum(int64_t n, const Term& term) {
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
ZOO_INLINE float row_maximum(const float* x, int64_t n) {
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

}  // namespace zoo

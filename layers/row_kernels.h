#pragma once
// What several kernels do to a row of floats: as many lanes at a time as the widest vectors have, twice over,
// so that an addition need not wait for the last.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "layers/kernels.h"

namespace zoo {

inline constexpr int64_t kRowLanes = 32;

/// Σ term(i) for 0 ≤ i < n. `term` has to be inlined: [...](int64_t i) ZOO_INLINED { return ...; }
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

/// The largest of n numbers; -∞ of none.
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

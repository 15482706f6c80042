#pragma once
// Sums of probabilities that are given by their logarithms.

#include <algorithm>
#include <cmath>
#include <limits>

namespace zoo {

/// The logarithm of the probability 0.
inline constexpr double kLogOfZero = -std::numeric_limits<double>::infinity();

/// log(e^a + e^b) without overflow; a and b are numbers or kLogOfZero.
inline double log_sum(double a, double b) {
  const double high = std::max(a, b), low = std::min(a, b);
  return low == kLogOfZero ? high : high + std::log1p(std::exp(low - high));
}

}  // namespace zoo

#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "io/config/describe.h"

namespace zoo {

/// The range of a whole number. Limits has it as doubles, which 64 bits need not be.
struct WholeLimits {
  int64_t min = std::numeric_limits<int64_t>::min(), max = std::numeric_limits<int64_t>::max();

  explicit WholeLimits(const Limits& limits) {
    constexpr double beyond = 0x1p63;  // the first number that is too large
    if (limits.min >= -beyond) min = static_cast<int64_t>(std::ceil(limits.min));
    if (limits.min_excluded && static_cast<double>(min) == limits.min) ++min;
    if (limits.max < beyond) max = static_cast<int64_t>(std::floor(limits.max));
  }
  bool contain(int64_t value) const { return value >= min && value <= max; }
};

}  // namespace zoo

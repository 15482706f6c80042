#pragma once
// How much work is worth another thread.

#include <cstdint>

namespace zoo {

/// The grain size of parallel loops, in numbers.
inline constexpr int64_t kGrainSize = 16384;
/// The grain size in rows of `width` ≥ 1 numbers, at least one row.
inline int64_t grain_rows(int64_t width) { return width < kGrainSize ? kGrainSize / width : 1; }

}  // namespace zoo

#pragma once
// How a matrix W (O, I) lies in memory for products with few rows, y = x Wᵀ: in panels of 32 outputs, one
// after the other. A panel is read from its first byte to its last, and the lanes of a vector are outputs, so
// that nothing is summed across lanes.
//
//   fp32  for each input: 32 floats. Only tiles of other formats, on their way through the cache, are stored
//         so; a matrix in fp32 stays as it is (rows_product())
//   fp16  for each input: 32 halves
//   bf16  for each input: 16 pairs of output j (low half of the word) and output j + 16 (high half)
//   int8  32 floats, the scales of the outputs. Then for each 4 inputs: 32 × 4 bytes w + 128, w in -127 … 127
//   int4  for each group of 32 inputs: 32 halves, the scales of the group. Then 4 × 32 × 4 bytes: byte
//         (p, j, i) has w + 8 of output j and of input 4p + i in its lower four bits, and of input 16 + 4p +
//         i in its upper four bits; w in -8 … 7
//
// The last panel is filled up with zeros, the last group of int8 and int4, too. Every part of 64 bytes is
// aligned to 64 bytes if the panels are.

#include <cstdint>

namespace zoo {

inline constexpr int64_t kPanel = 32;  // outputs
inline constexpr int64_t kGroup = 32;  // inputs that share a scale
inline constexpr int64_t kInt8Offset = 128, kInt4Offset = 8;
inline constexpr int64_t kInt8Header = kPanel * 4;  // bytes
inline constexpr int64_t kInt8Group = kPanel * kGroup;
inline constexpr int64_t kInt4Scales = kPanel * 2;
inline constexpr int64_t kInt4Group = kInt4Scales + kPanel * kGroup / 2;

/// The number of groups that n inputs fill, wholly or in part.
inline constexpr int64_t groups_of(int64_t n) { return (n + kGroup - 1) / kGroup; }
inline constexpr int64_t panels_of(int64_t n) { return (n + kPanel - 1) / kPanel; }

/// Rows of inputs in whole numbers, for int8 and int4: x ≈ scale · number, with a scale for each group.
struct IntegerRows {
  const int8_t* numbers;  // (M, groups · 32), from -127 to 127
  const float* scales;    // (M, groups)
  const int32_t* sums;    // (M, groups): of the numbers
  int64_t n_groups;

  /// The rows and groups from these on.
  IntegerRows from(int64_t row, int64_t group) const {
    const int64_t skipped = row * n_groups + group;
    return {.numbers = numbers + skipped * kGroup,
            .scales = scales + skipped,
            .sums = sums + skipped,
            .n_groups = n_groups};
  }
};

/// Rows of inputs in floats.
struct FloatRows {
  const float* data;
  int64_t stride;
};

}  // namespace zoo

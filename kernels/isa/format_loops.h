#pragma once
// Floats to numbers of fewer bits, and back.

#include "kernels/isa/kernels.h"
#include "kernels/isa/row_loops.h"

namespace zoo {
namespace {

constexpr float kLargestInt8 = 127;

/// Rounds to the nearest bf16, to the even one of two.
inline uint16_t upper_half(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  const auto rounded = static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  return x == x ? rounded : uint16_t{0x7FC0};
}

void store_bf16(const float* from, uint16_t* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = upper_half(from[i]);
}

void load_bf16(const uint16_t* from, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = std::bit_cast<float>(static_cast<uint32_t>(from[i]) << 16);
}

float store_int8(const float* from, int8_t* to, int64_t n) {
  float largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    const float size = std::abs(from[i]);
    largest = size > largest ? size : largest;
    finite = finite && size <= std::numeric_limits<float>::max();
  }
  const float scale = largest / kLargestInt8;
  if (!finite || scale == 0) {
    std::fill_n(to, n, int8_t{0});
    return finite ? 0 : std::numeric_limits<float>::quiet_NaN();
  }
  // Divided, not multiplied by 1 / scale, which overflows for the smallest scales. These are also inexact.
  for (int64_t i = 0; i < n; ++i) {
    const float whole = (from[i] / scale + kToInteger) - kToInteger;
    const float kept = whole > kLargestInt8 ? kLargestInt8 : whole < -kLargestInt8 ? -kLargestInt8 : whole;
    to[i] = static_cast<int8_t>(static_cast<int32_t>(kept));
  }
  return scale;
}

void load_int8(const int8_t* from, float scale, float* to, int64_t n) {
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(from[i]) * scale;
}

void round_groups(const float* x, int64_t n_groups, int8_t* numbers, float* scales, int32_t* sums) {
  constexpr float least = 1e-30F;  // smaller numbers are zero, and have a finite inverse
  for (int64_t group = 0; group < n_groups; ++group, x += kGroup, numbers += kGroup) {
    uint32_t largest = 0;  // as bits, of which NaN has the largest
    for (int64_t i = 0; i < kGroup; ++i)
      largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFU);
    const float range = std::bit_cast<float>(largest);
    const bool finite = range <= std::numeric_limits<float>::max(), some = finite && range >= least;
    scales[group] = some ? range / 127 : finite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    const float inverse = some ? 127 / range : 0.0F;
    int32_t sum = 0;
    for (int64_t i = 0; i < kGroup; ++i) {
      const auto bits = std::bit_cast<uint32_t>(x[i] * inverse + kToInteger);
      const auto number = static_cast<int8_t>(bits);
      numbers[i] = number;
      sum += number;
    }
    sums[group] = sum;
  }
}

Fit fit_int4(const float* w, float inverse) {
  float products[kGroup], squares[kGroup];
  for (int64_t i = 0; i < kGroup; ++i) {
    const float n = std::min(std::max(w[i] * inverse, -8.0F), 7.0F) + kToInteger - kToInteger;
    products[i] = w[i] * n;
    squares[i] = n * n;
  }
  Fit fit;
  for (int64_t i = 0; i < kGroup; ++i) {
    fit.products += products[i];
    fit.squares += squares[i];
  }
  return fit;
}

}  // namespace
}  // namespace zoo

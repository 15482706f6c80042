#include "layers/kernels/products/integer_rows.h"

#include <algorithm>
#include <bit>
#include <limits>

#include <ATen/Parallel.h>

#include "layers/kernels/vector_kernels.h"

namespace zoo {
namespace {

constexpr int64_t kBytesOfGroup = kGroup + 8;  // the numbers, their scale, their sum

/// The whole groups of a row.
ZOO_VECTOR_KERNEL void to_integers(const float* x, int64_t n_groups, int8_t* numbers, float* scales,
                                   int32_t* sums) {
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

void row_to_integers(const float* x, int64_t n_inputs, int8_t* numbers, float* scales, int32_t* sums) {
  const int64_t whole = n_inputs / kGroup, rest = n_inputs % kGroup;
  to_integers(x, whole, numbers, scales, sums);
  if (rest == 0) return;
  float last[kGroup] = {};
  std::copy_n(x + whole * kGroup, rest, last);
  to_integers(last, 1, numbers + whole * kGroup, scales + whole, sums + whole);
}

}  // namespace

IntegerInputs::IntegerInputs(FloatRows x, int64_t n_rows) {
  const int64_t n_inputs = x.stride, n_groups = groups_of(n_inputs);
  memory_ = torch::empty({n_rows * n_groups * kBytesOfGroup}, torch::kUInt8);
  auto* const numbers = reinterpret_cast<int8_t*>(memory_.mutable_data_ptr<uint8_t>());
  auto* const scales = reinterpret_cast<float*>(numbers + n_rows * n_groups * kGroup);
  auto* const sums = reinterpret_cast<int32_t*>(scales + n_rows * n_groups);
  rows_ = {.numbers = numbers, .scales = scales, .sums = sums, .n_groups = n_groups};
  if (n_inputs == 0) return;
  at::parallel_for(0, n_rows, grain_rows(n_inputs), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r)
      row_to_integers(x.data + r * n_inputs, n_inputs, numbers + r * n_groups * kGroup, scales + r * n_groups,
                      sums + r * n_groups);
  });
}

}  // namespace zoo

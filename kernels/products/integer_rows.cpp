#include "kernels/products/integer_rows.h"

#include <algorithm>

#include <ATen/Parallel.h>

#include "kernels/grain.h"
#include "kernels/isa/kernels.h"

namespace zoo {
namespace {

constexpr int64_t kBytesOfGroup = kGroup + 8;  // the numbers, their scale, their sum

void row_to_integers(const float* x, int64_t n_inputs, int8_t* numbers, float* scales, int32_t* sums) {
  const auto round_groups = kernels().round_groups;
  const int64_t whole = n_inputs / kGroup, rest = n_inputs % kGroup;
  round_groups(x, whole, numbers, scales, sums);
  if (rest == 0) return;
  float last[kGroup] = {};
  std::copy_n(x + whole * kGroup, rest, last);
  round_groups(last, 1, numbers + whole * kGroup, scales + whole, sums + whole);
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

#pragma once
// Inputs in whole numbers of 8 bits, for products with integer weights.

#include <torch/types.h>

#include "kernels/isa/panels.h"

namespace zoo {

/// Rows x (M, I) as whole numbers from -127 to 127 with a scale for each group of 32 inputs: x ≈ scale ·
/// number with an error of scale / 2 at most. A group with an infinite number or NaN has the scale NaN. One
/// row's numbers do not depend on the others.
class IntegerInputs {
 public:
  /// x: (M, I), rows without gaps.
  IntegerInputs(FloatRows x, int64_t n_rows);

  const IntegerRows& rows() const { return rows_; }

 private:
  torch::Tensor memory_;
  IntegerRows rows_;  // in memory_
};

}  // namespace zoo

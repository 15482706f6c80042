#pragma once
// Inputs in whole numbers of 8 bits, for products with integer weights.

#include <torch/types.h>

#include "layers/kernels/products/panels.h"

namespace zoo {

/// Rows x (M, I) as whole numbers from -127 to 127 with a scale for each group of 32 inputs: x ≈ scale ·
/// number with an error of scale / 2 at most. A group with an infinite number or NaN has the scale NaN. One
/// row's numbers do not depend on the others.
class IntegerInputs {
 public:
  /// x: (M, I) float, contiguous.
  explicit IntegerInputs(const torch::Tensor& x);

  /// From row `first` on.
  IntegerRows rows(int64_t first) const;

 private:
  int64_t n_rows_, n_groups_;
  torch::Tensor memory_;
};

}  // namespace zoo

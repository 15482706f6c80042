#pragma once
// A sum, and what a norm makes of it: a GPU may compute both in one pass.

#include <torch/types.h>

namespace zoo {

/// x + dropout(y, p), which nobody has computed yet. x and y have one shape.
struct PendingSum {
  torch::Tensor x, y;
  double p = 0;
};

/// A sum and its norm.
struct NormedSum {
  torch::Tensor sum, normed;
};

/// Who reads a norm. `products`: a reader that only multiplies it by matrices. Under mixed precision it gets
/// the norm in their type.
enum class NormReader { any, products };

}  // namespace zoo

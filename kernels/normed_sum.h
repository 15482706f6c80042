#pragma once

#include <torch/types.h>

namespace zoo {

/// A sum and what a norm makes of it, which may be computed in one pass.
struct NormedSum {
  torch::Tensor sum, normed;
};

}  // namespace zoo

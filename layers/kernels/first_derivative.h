#pragma once
// What the backward passes of our own functions have in common.

#include <c10/util/Exception.h>
#include <torch/utils.h>

namespace zoo {

/// To be called first in a backward pass that is not made of differentiable operations: throws c10::Error
/// where it is to be differentiated itself (create_graph), as autograd would take its result for a constant.
inline void only_first_derivative(const char* function) {
  TORCH_CHECK(!torch::GradMode::is_enabled(), "there is no second derivative of ", function);
}

}  // namespace zoo

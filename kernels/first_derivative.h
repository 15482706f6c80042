#pragma once
// The check that the backward passes of our functions share.

#include <c10/util/Exception.h>
#include <torch/utils.h>

namespace zoo {

/// A backward pass that is not made of differentiable operations calls this first. Throws c10::Error if the
/// backward pass is to be differentiated itself (create_graph), because autograd would treat its result as a
/// constant.
inline void only_first_derivative(const char* function) {
  TORCH_CHECK(!torch::GradMode::is_enabled(), "there is no second derivative of ", function,
              ": run its backward pass without create_graph");
}

}  // namespace zoo

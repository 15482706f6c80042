#pragma once
// From the backward passes of the parts of a batch to the reducer.

#include <atomic>
#include <cstddef>
#include <vector>

#include <torch/types.h>

#include "training/parallel/gradient_reducer.h"

namespace zoo {

/// The gradients of the last batch of a step: each is handed on to the reducer as soon as the backward passes
/// of all parts have made it. A part belongs to one thread; different parts may call at the same time.
class GradientArrivals {
 public:
  GradientArrivals(const std::vector<torch::Tensor>& parameters, size_t n_parts, GradientReducer& reducer);

  /// From now on the backward pass of `part` makes each gradient once and whole, but for `earlier` (one a
  /// parameter, or none at all), which is to be added. What arrives before is not heard.
  void listen(size_t part, std::vector<torch::Tensor> earlier);
  /// The gradient of parameter `i`.
  void arrive(size_t part, size_t i, const torch::Tensor& gradient);
  /// The backward pass of `part` is over: what has not come will not.
  void finish(size_t part);

 private:
  struct Part {
    bool listens = false;
    std::vector<torch::Tensor> gradients, earlier;
    std::vector<char> has_arrived;
  };
  void hand_on(size_t i);

  const std::vector<torch::Tensor>& parameters_;
  GradientReducer& reducer_;
  std::vector<Part> parts_;
  std::vector<std::atomic<size_t>> n_missing_;  // parts, one count a parameter
};

}  // namespace zoo

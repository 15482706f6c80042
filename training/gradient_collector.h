#pragma once
// From the backward passes of the parts of a batch to the reducer.

#include <atomic>
#include <cstddef>
#include <vector>

#include <torch/types.h>

#include "training/gradient_reducer.h"

namespace zoo {

/// Collects the gradients of the last batch of a step. Each part of the batch has a backward pass of its own.
/// As soon as all parts have made the gradient of a parameter, it is marked ready in the reducer. A part
/// belongs to one thread; different parts may call at the same time.
class GradientCollector {
 public:
  GradientCollector(const std::vector<torch::Tensor>& parameters, size_t n_parts, GradientReducer& reducer);

  /// From now on the backward pass of `part` makes each gradient once and completely. `earlier` (one tensor
  /// per parameter, or none at all) is added to it. Gradients that were marked ready before are ignored.
  void begin_last_pass(size_t part, std::vector<torch::Tensor> earlier);
  /// Takes the gradient of parameter `i`.
  void mark_ready(size_t part, size_t i, const torch::Tensor& gradient);
  /// The backward pass of `part` is over: it makes no gradients of the remaining parameters.
  void finish(size_t part);

 private:
  struct Part {
    bool in_last_pass = false;
    std::vector<torch::Tensor> gradients, earlier;
    std::vector<char> is_ready;
  };
  void hand_to_reducer(size_t i);

  const std::vector<torch::Tensor>& parameters_;
  GradientReducer& reducer_;
  std::vector<Part> parts_;
  std::vector<std::atomic<size_t>> n_missing_;  // for each parameter: parts whose gradient is missing
};

}  // namespace zoo

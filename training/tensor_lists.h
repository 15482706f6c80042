#pragma once
// What is done to all gradients of a model, one after the other, as if they were one long vector. LibTorch's
// foreach operations do that on a GPU; on the processor they share each tensor among the threads by itself,
// and for a small model most of their time is threads meeting.

#include <vector>

#include <torch/types.h>

namespace zoo {

/// sums[i] += terms[i], pairs of one shape.
void add_to(const std::vector<torch::Tensor>& sums, const std::vector<torch::Tensor>& terms);

/// √Σ x² over all numbers of `tensors`, at least one tensor: a float scalar on their device. It does not
/// depend on the number of threads.
torch::Tensor norm_of(const std::vector<torch::Tensor>& tensors);

/// tensors[i] *= factor, a scalar on their device.
void multiply(const std::vector<torch::Tensor>& tensors, const torch::Tensor& factor);

}  // namespace zoo

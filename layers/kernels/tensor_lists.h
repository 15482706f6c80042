#pragma once
// What is done to all gradients of a model, as if they were one long vector. LibTorch's foreach operations do
// that on a GPU; on the processor they take one tensor after the other, and threads meet after each.

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

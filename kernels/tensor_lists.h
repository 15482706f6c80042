#pragma once
// Operations on all gradients of a model, as if they were one long vector. LibTorch's foreach operations do
// this on a GPU; on the CPU they process one tensor after the other and synchronise the threads after each.

#include <vector>

#include <torch/types.h>

namespace zoo {

/// sums[i] += terms[i]; both have the same shape.
void foreach_add_(const std::vector<torch::Tensor>& sums, const std::vector<torch::Tensor>& terms);

/// √Σ x² over all numbers of `tensors`, at least one tensor: a float scalar on their device. The result does
/// not depend on the number of threads.
torch::Tensor total_norm(const std::vector<torch::Tensor>& tensors);

/// tensors[i] *= factor, a scalar on their device.
void foreach_mul_(const std::vector<torch::Tensor>& tensors, const torch::Tensor& factor);

}  // namespace zoo

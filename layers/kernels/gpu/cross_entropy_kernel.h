#pragma once
// Cross-entropy on a GPU by a kernel of our own (cross_entropy.cu), which reads the logits twice and writes
// their gradient once; LibTorch's operations make a dozen passes.

#include <functional>

#include <torch/types.h>

namespace zoo {

/// What the kernel computes of contiguous logits (N, V), float, bfloat16 or half, which it overwrites by the
/// gradient. Returns the loss of each row, (N) float.
using CrossEntropyKernel = std::function<torch::Tensor(
    const torch::Tensor& logits, const torch::Tensor& targets, double smoothing, double weight)>;

/// The kernel for a device, or null (checked_kernels.h). `reference` returns the sum of the losses, and
/// overwrites the logits, too.
const CrossEntropyKernel* cross_entropy_kernel(c10::Device device, const CrossEntropyKernel& reference);

}  // namespace zoo

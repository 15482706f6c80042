#pragma once
// Cross-entropy on a GPU by a kernel of our own (cross_entropy.cu), which reads the logits twice and writes
// their gradient once; LibTorch's operations make a dozen passes.

#include <functional>

#include <torch/types.h>

#include "kernels/gpu/gpu_program.h"

namespace zoo {

/// Replaces contiguous logits (N, V), float, bfloat16 or half, by the gradient. Returns the loss of each row,
/// (N) float.
torch::Tensor cross_entropy_by(const KernelProgram& program, const torch::Tensor& logits,
                               const torch::Tensor& targets, double smoothing, double weight);

/// The same by operations, but it returns the sum of the losses.
using CrossEntropyInPlace = std::function<torch::Tensor(
    const torch::Tensor& logits, const torch::Tensor& targets, double smoothing, double weight)>;

/// The program for a device, or null (checked_program.h).
const KernelProgram* cross_entropy_program(c10::Device device, const CrossEntropyInPlace& reference);

}  // namespace zoo

#pragma once
// x + dropout(y) on a GPU by a kernel of our own (gpu/dropout.cu): one pass forward and one backward, without
// a mask. LibTorch's operations make two and two, and keep a mask.

#include <optional>

#include <torch/types.h>

#include "kernels/gpu/gpu_program.h"

namespace zoo {

/// x + dropout(y, p) in the type of x, of tensors of one shape with a multiple of 8 elements. x: float, and y
/// float, bfloat16 or half; or both bfloat16, or both half. The seed is drawn on the device from its default
/// generator of LibTorch, so recorded steps draw others each time. Nothing where the kernel does not serve:
/// for other tensors, on other devices than CUDA's, or if it does not agree there with the processor
/// (checked_program.h).
std::optional<torch::Tensor> gpu_add_dropout(const torch::Tensor& x, const torch::Tensor& y, double p);

/// The same by `program`, which outlives the result's graph. seed: (1) int64.
torch::Tensor add_dropout_by(const KernelProgram& program, const torch::Tensor& x, const torch::Tensor& y,
                             double p, const torch::Tensor& seed);
/// The factors of the elements of y, 0 or 1/(1-p), as the processor's kernel computes them: (n) float.
torch::Tensor dropout_factors(int64_t n, double p, uint64_t seed);

}  // namespace zoo

#pragma once
// Rotary positions on a GPU by a kernel of our own (gpu/rotary.cu), one pass forward and one backward;
// LibTorch's operations make three or four each, and round to 16 bits in between.

#include <optional>

#include <torch/types.h>

#include "kernels/cpu_rotary.h"
#include "kernels/gpu/gpu_program.h"

namespace zoo {

/// Rotates the first R elements of each head of x (B, H, T, Dh), float, bfloat16 or half; the result has x's
/// type. Nothing where the kernel does not serve: for other types and layouts, on other devices than CUDA's,
/// or if it does not agree with LibTorch's operations there (checked_program.h).
std::optional<torch::Tensor> gpu_rotary(const torch::Tensor& x, const RotaryAngles& angles);

/// The same by `program`, which outlives the result's graph.
torch::Tensor rotary_by(const KernelProgram& program, const torch::Tensor& x, const RotaryAngles& angles);

}  // namespace zoo

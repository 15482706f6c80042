#pragma once
// Gated activations on a GPU by a kernel of our own (gpu/gate.cu), one pass forward and one backward;
// LibTorch's operations make two and three, and round to 16 bits in between.

#include <optional>

#include <torch/types.h>

#include "kernels/gpu/gpu_program.h"

namespace zoo {

enum class GateFunction { silu, gelu_exact, gelu_by_tanh };

/// act(gate) ⊙ up, (…, F), of tensors of this shape, float, bfloat16 or half, whose rows are multiples of 16
/// bytes. `up` undefined: `gate` (…, 2F) has both, the gate first. Nothing where the kernel does not serve:
/// for other types and widths, on other devices than CUDA's, or if it does not agree with LibTorch's
/// operations there (checked_program.h).
std::optional<torch::Tensor> gpu_gated(GateFunction function, const torch::Tensor& gate,
                                       const torch::Tensor& up = {});

/// The same by `program`, which outlives the result's graph.
torch::Tensor gated_by(const KernelProgram& program, GateFunction function, const torch::Tensor& gate,
                       const torch::Tensor& up);

}  // namespace zoo

#pragma once
// Gated activations and quick GELU on a GPU by kernels of our own (gpu/gate.cu), one pass forward and one
// backward; LibTorch's operations make two to five, and round to 16 bits in between. Its GELU, SiLU and ReLU
// are one pass.

#include <optional>

#include <torch/types.h>

#include "kernels/gpu/gpu_program.h"

namespace zoo {

enum class GateFunction { silu, gelu_exact, gelu_by_tanh, relu };

/// act(gate) ⊙ up, (…, F), of tensors of this shape, float, bfloat16 or half, whose rows are multiples of 16
/// bytes. `up` undefined: `gate` (…, 2F) has both, the gate first. Nothing where the kernel does not serve:
/// for other types and widths, on other devices than CUDA's, or if it does not agree with LibTorch's
/// operations there (checked_program.h).
std::optional<torch::Tensor> gpu_gated(GateFunction function, const torch::Tensor& gate,
                                       const torch::Tensor& up = {});

/// x·sigmoid(1.702 x) of a tensor as above. Nothing where the kernel does not serve.
std::optional<torch::Tensor> gpu_quick_gelu(const torch::Tensor& x);

/// The same by `program`, which outlives the result's graph.
torch::Tensor gated_by(const KernelProgram& program, GateFunction function, const torch::Tensor& gate,
                       const torch::Tensor& up);
torch::Tensor quick_gelu_by(const KernelProgram& program, const torch::Tensor& x);

}  // namespace zoo

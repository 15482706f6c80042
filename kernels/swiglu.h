#pragma once
// silu(gate) ⊙ up (Shazeer 2020), silu(x) = x·σ(x). In float32 on the CPU the forward and the backward pass
// each make one pass, and silu(gate) is not stored; so it is on a GPU (gpu_gate.h). LibTorch does everything
// else.

#include <torch/types.h>

namespace zoo {

/// gate, up: (…, F). Returns (…, F).
torch::Tensor swiglu(const torch::Tensor& gate, const torch::Tensor& up);

/// Gate and up in one tensor, gate first: (…, 2F) → (…, F).
torch::Tensor swiglu(const torch::Tensor& gate_up);

}  // namespace zoo

#pragma once
// silu(gate) ⊙ up (Shazeer 2020), silu(x) = x·σ(x). In float32 on the processor it is one pass, as is its
// gradient, and silu(gate) is not kept for it; everything else is left to LibTorch.

#include <torch/types.h>

namespace zoo {

/// gate, up: (…, F). Returns (…, F).
torch::Tensor swiglu(const torch::Tensor& gate, const torch::Tensor& up);

/// Both beside each other, gate first: (…, 2F) → (…, F).
torch::Tensor swiglu(const torch::Tensor& gate_up);

}  // namespace zoo

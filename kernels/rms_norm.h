#pragma once
// RMSNorm in one pass over the numbers. On the CPU LibTorch makes six passes for the output and twelve for
// the gradient.

#include <torch/types.h>

namespace zoo {

/// γ ⊙ x/√(mean(x²)+ε) over the last dimension (Zhang & Sennrich 2019; torch.nn.RMSNorm). x (…, D), gain (D)
/// → (…, D), computed in the type of the gain.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& gain, double eps);

}  // namespace zoo

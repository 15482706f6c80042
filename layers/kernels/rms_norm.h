#pragma once
// RMSNorm in one pass over the numbers, where LibTorch makes six of it on the CPU, and twelve of its
// gradient.

#include <torch/types.h>

namespace zoo {

/// γ ⊙ x/√(mean(x²)+ε) over the last dimension (Zhang & Sennrich 2019; torch.nn.RMSNorm). x (…, D), gain (D)
/// → (…, D).
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& gain, double eps);

}  // namespace zoo

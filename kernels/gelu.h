#pragma once
// GELU (Hendrycks & Gimpel 2016), x·Φ(x) with the normal distribution's Φ. In float32 on the CPU one pass
// computes value and slope, so that the backward pass is one multiplication; LibTorch does everything else.

#include <torch/types.h>

namespace zoo {

/// exact: Φ(x) = (1 + erf(x / √2)) / 2. by_tanh, as in GPT-2: (1 + tanh(√(2/π)·(x + 0.044715·x³))) / 2.
enum class Phi { exact, by_tanh };

torch::Tensor gelu(const torch::Tensor& x, Phi phi);

}  // namespace zoo

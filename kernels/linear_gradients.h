#pragma once
// The gradients of a linear layer Y = X Wᵀ on the CPU, by a gemm without packing
// (kernels/isa/gemm_loops.h). O is the number of outputs, I the number of inputs, N the number of
// rows.

#include <torch/types.h>

namespace zoo {

/// Whether weight_gradient() is available: it needs an I that fills vectors of 16 numbers.
bool has_weight_gradient(const torch::Tensor& x);

/// Gᵀ X = Σₙ gₙ ⊗ xₙ. gradient: (N, O), x: (N, I), float, contiguous. Returns (O, I). Throws c10::Error
/// unless has_weight_gradient(x).
torch::Tensor weight_gradient(const torch::Tensor& gradient, const torch::Tensor& x);

/// Whether input_gradient() is available: also only for weights that fit into a core's cache.
bool has_input_gradient(const torch::Tensor& weight);

/// G W. gradient: (N, O), weight: (O, I), float, contiguous. Returns (N, I). Throws c10::Error unless
/// has_input_gradient(weight).
torch::Tensor input_gradient(const torch::Tensor& gradient, const torch::Tensor& weight);

}  // namespace zoo

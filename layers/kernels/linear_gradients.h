#pragma once
// The gradients of a linear layer Y = X Wᵀ on the CPU, from matrices as they lie in memory
// (layers/kernels/small_products.h). O is the number of outputs, I of inputs, N of rows.

#include <torch/types.h>

namespace zoo {

/// Whether weight_gradient() is the fastest there is here: with 512-bit vectors, and widths that fill them.
/// On an AMD Zen 4 it is 5 to 25 % faster than MKL.
bool has_weight_gradient(const torch::Tensor& x);

/// Gᵀ X = Σₙ gₙ ⊗ xₙ. gradient: (N, O), x: (N, I), float, contiguous; x such that has_weight_gradient().
/// Returns (O, I).
torch::Tensor weight_gradient(const torch::Tensor& gradient, const torch::Tensor& x);

/// The same of input_gradient(), which is for weights that fit into a core's cache. There it is up to 9 %
/// faster than oneDNN, what a call of that costs included.
bool has_input_gradient(const torch::Tensor& weight);

/// G W. gradient: (N, O), weight: (O, I), float, contiguous; weight such that has_input_gradient(). Returns
/// (N, I).
torch::Tensor input_gradient(const torch::Tensor& gradient, const torch::Tensor& weight);

}  // namespace zoo

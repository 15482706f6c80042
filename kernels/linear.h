#pragma once
// x Wᵀ + b, computed by the library that is fastest on the processor.
//
// LibTorch's linear calls MKL, which uses its kernels for 512-bit vectors only on Intel processors. On other
// processors with such vectors oneDNN is faster for the output and for the input's gradient; our own kernels
// (kernels/linear_gradients.h) are faster for the weight's gradient and for the input's gradient of a
// small layer (docs/performance.md). LibTorch does everything else: other types, other devices, a few rows.
// Few rows without gradients are WeightMatrix's own (kernels/products).

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

namespace zoo {

/// x: (…, I), weight: (O, I), bias: (O) or undefined. Returns (…, O).
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias = {});

/// x Wᵀ + b in the 16-bit format of `rounded`, a copy of `weight`; gradients go to `weight` and `bias`, in
/// float. Under mixed precision LibTorch rounds the weight at each use; a copy is made once a step.
torch::Tensor rounded_linear(const torch::Tensor& x, const torch::Tensor& weight,
                             const torch::Tensor& rounded, const torch::Tensor& bias = {});

/// The same with the weight and the bias of a module.
inline torch::Tensor linear(const torch::nn::Linear& module, const torch::Tensor& x) {
  return linear(x, module->weight, module->bias);
}

}  // namespace zoo

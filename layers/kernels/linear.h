#pragma once
// x Wᵀ + b, by whichever library is fastest on the processor.
//
// LibTorch's own linear calls MKL, which keeps its kernels for 512-bit vectors from other processors than
// Intel's. There, oneDNN's are about a tenth faster for the output and for the input's gradient, and our own
// for the weight's and for a small layer's input's (layers/kernels/linear_gradients.h). Everything else (other types
// and devices, a few rows) is left to LibTorch.

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

namespace zoo {

/// x: (…, I), weight: (O, I), bias: (O) or undefined. Returns (…, O).
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias = {});

/// With the weights of a module.
inline torch::Tensor linear(const torch::nn::Linear& module, const torch::Tensor& x) {
  return linear(x, module->weight, module->bias);
}

}  // namespace zoo

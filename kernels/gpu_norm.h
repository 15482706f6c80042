#pragma once
// LayerNorm and RMSNorm under mixed precision on a GPU, by kernels of our own (gpu/norm.cu): they read the
// residual stream in its type and write the 16 bits that products read, in one pass. The same pass can add to
// the stream what a sub-layer has computed.

#include <optional>

#include <torch/types.h>

#include "kernels/gpu/gpu_program.h"
#include "kernels/normed_sum.h"

namespace zoo {

enum class NormCentre { mean, zero };

/// γ ⊙ (x - μ)/√(σ² + ε) + β over the last dimension; with NormCentre::zero RMSNorm: μ = 0. x (…, D) float,
/// bfloat16 or half; gain (D) and bias (D) or undefined, float. Returns (…, D) in autocast's 16-bit type;
/// gradients have the types of their tensors. Nothing where the kernel does not serve: outside autocast, on
/// other devices than CUDA's, or if it does not agree with LibTorch's there (checked_program.h).
std::optional<torch::Tensor> gpu_norm(const torch::Tensor& x, const torch::Tensor& gain,
                                      const torch::Tensor& bias, double eps, NormCentre centre);
/// A sum, in the type of x, and its norm: in autocast's 16-bit type for products, and otherwise in the type
/// of x. y (…, D) like x, float or of 16 bits. Forward one pass, and backward another one, where the
/// gradients of the sum and of the norm become those of x and y. Dropout is that of gpu_dropout.h. Nothing
/// also where the sum has another type than x, and with dropout unless D is a multiple of 8.
std::optional<NormedSum> gpu_normed_sum(const PendingSum& pending, const torch::Tensor& gain,
                                        const torch::Tensor& bias, double eps, NormCentre centre,
                                        NormReader reader);

struct NormCall {
  const KernelProgram* program;  // outlives the result's graph
  NormCentre centre;
  torch::ScalarType out;
  double eps;
};
/// The same by a program.
torch::Tensor norm_by(const NormCall& call, const torch::Tensor& x, const torch::Tensor& gain,
                      const torch::Tensor& bias);
/// seed: (1) int64; undefined without dropout.
NormedSum normed_sum_by(const NormCall& call, const PendingSum& pending, const torch::Tensor& gain,
                        const torch::Tensor& bias, const torch::Tensor& seed = {});

}  // namespace zoo

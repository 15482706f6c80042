#pragma once
// Scaled dot-product attention on a processor, forward and backward pass, over any list of bands
// (kernels/bands.h). Only visible pairs cost time. As in FlashAttention (Dao et al. 2022), keys are
// read in tiles, and only one block of weights is ever stored. LibTorch's kernel computes the scores of all
// pairs and then masks them. The small gemms need no packing (kernels/isa/gemm_loops.h).

#include <torch/types.h>

#include "kernels/bands.h"

namespace zoo {

/// Whether cpu_attention() takes these tensors: shapes as below, float, on the CPU, head dimensions
/// contiguous and multiples of 16, at least 8 queries, no autocast.
bool has_cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v);

/// softmax(QKᵀ·scale)V over the visible pairs. q: (B, H, T, Dh), k: (B, K, S, Dh), v: (B, K, S, Dv), H a
/// multiple of K. Returns (B, H, T, Dv), laid out in memory as (B, T, H, Dv); zeros for queries that see
/// nothing. Throws c10::Error unless has_cpu_attention() and scale > 0.
torch::Tensor cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                            const VisiblePairs& visible, double scale);

}  // namespace zoo

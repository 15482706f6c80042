#pragma once
// Scaled dot-product attention on a processor with 512-bit vectors, forward and backward pass. A block of
// queries attends to all its visible keys at once, as in FlashAttention (Dao et al. 2022) but with whole rows
// of scores: only one block of weights is ever stored. Under a causal mask this kernel skips the keys that no
// query of the block sees; LibTorch's kernel computes their scores and then masks them. The small gemms need
// no packing (layers/kernels/gemm.h). On an AMD Zen 4, causal attention is 1.2 to 1.6 times as fast as with
// LibTorch's kernel; where all keys are visible, both are equally fast.

#include <torch/types.h>

namespace zoo {

/// The keys that a query sees.
enum class Visible { all_keys, causal };

/// Whether cpu_attention() takes these tensors: shapes as below, float, on the CPU, head dimensions
/// contiguous and multiples of 16, at least 8 queries, at most 2048 keys, as many keys as queries if causal,
/// no autocast.
bool has_cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       Visible visible);

/// softmax(QKᵀ·scale)V. q: (B, H, T, Dh), k: (B, K, S, Dh), v: (B, K, S, Dv), H a multiple of K. Returns
/// (B, H, T, Dv), laid out in memory as (B, T, H, Dv). Throws c10::Error unless has_cpu_attention() and
/// scale > 0.
torch::Tensor cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                            Visible visible, double scale);

}  // namespace zoo

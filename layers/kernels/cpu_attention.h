#pragma once
// Scaled dot-product attention on a processor with 512-bit vectors, forward and backward pass. A few queries
// at a time meet all the keys that they see, as in FlashAttention (Dao et al. 2022) with whole rows: of the
// weights only those few rows are ever there. Under a causal mask the keys that nobody of them sees are left
// out, which LibTorch's kernel computes and hides; and the small products need no packing
// (layers/kernels/small_products.h). On an AMD Zen 4 that makes causal attention 1.2 to 1.6 times as fast as
// LibTorch's kernel; where all keys are seen, both are equally fast.

#include <torch/types.h>

namespace zoo {

enum class Visible { all_keys, own_and_earlier_keys };

/// Whether cpu_attention() takes these: shapes as below, float, on the CPU, each head's numbers side by side
/// and a multiple of 16, all keys for each query or as many keys as queries, no autocast.
bool has_cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                       Visible visible);

/// softmax(QKᵀ·scale)V of what has_cpu_attention(). q: (B, H, T, Dh), k: (B, K, S, Dh), v: (B, K, S, Dv), H a
/// multiple of K. Returns (B, H, T, Dv), which lies as (B, T, H, Dv) does.
torch::Tensor cpu_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                            Visible visible, double scale);

}  // namespace zoo

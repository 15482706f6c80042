#pragma once
// Flash attention (Dao et al. 2022) on a GPU for rows of different lengths and for windows, without a tensor
// of (query, key) pairs. LibTorch's scaled_dot_product_attention takes neither, so this calls the kernels
// below it.

#include <optional>

#include <torch/types.h>

namespace zoo {

struct FlashAttentionOptions {
  bool is_causal = false;
  /// (B) int64 on the device: row b sees keys 0 … lengths[b]-1; undefined: all.
  torch::Tensor lengths = {};
  /// Keys that a query sees on each side besides its own; in causal attention, before it; default: all.
  std::optional<int64_t> window = std::nullopt;
  double scale = 1.0;
  double dropout = 0.0;
};

/// Whether flash_attention() is available: on a GPU of compute capability 8, in 16 bits, with heads of at
/// most 256 numbers. Before the first use in a process its results are compared with attention step by step;
/// if they differ, or LibTorch lacks the kernels, it is not available.
bool has_flash_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v);

/// Attention without a mask. q: (B, H, T, Dh), k, v: (B, K, S, Dh); with causality or a window T = S. Returns
/// (B, H, T, Dh). Queries behind the length of a row, which are padding, get other values than with a mask if
/// attention is causal or has a window.
torch::Tensor flash_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              const FlashAttentionOptions& options);

}  // namespace zoo

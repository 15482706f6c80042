#pragma once
// softmax(QKᵀ·scale + bias)V over the visible keys (Vaswani et al. 2017, equation 1), implemented twice: by
// fused kernels, LibTorch's or our own (kernels/cpu_attention.h), and step by step for
// callers that need the weights. Both give the same output.

#include <optional>

#include <torch/types.h>

#include "layers/attention/layer_state.h"
#include "layers/attention/mask.h"
#include "layers/attention/positions.h"

namespace zoo {

struct ScaledDotProductOptions {
  Mask mask = {};               // a query that sees no key gets zeros
  torch::Tensor bias = {};      // broadcastable to (B, H, T, S), added to the scaled scores; may be undefined
  std::optional<double> scale;  // default 1/√Dh
  double dropout = 0.0;         // on the weights; the caller passes 0 outside training
  /// c: the scores become c·tanh(scores/c) before the mask (Gemma 2). No fused kernel does this, so attention
  /// goes step by step.
  std::optional<double> softcap = {};
  /// (H): a further score of each head in the softmax, which has no value; may be undefined. Attention then
  /// goes step by step.
  torch::Tensor sinks = {};
};

/// q: (B, H, T, Dh), k: (B, K, S, Dh), v: (B, K, S, Dv), H a multiple of K: each key/value head serves H/K
/// query heads (Ainslie et al. 2023). Returns (B, H, T, Dv).
torch::Tensor fused_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              const ScaledDotProductOptions& options = {});

/// The same over all keys and values of `state`, after it has read those of the tokens at `range`: k (B, K,
/// T, Dh) and v (B, K, T, Dv). options.mask and options.bias have S = range.n_keys(). Blocks are read where
/// they are if there are few queries.
torch::Tensor fused_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              KeyValueState& state, const PositionRange& range,
                              const ScaledDotProductOptions& options);

/// The same over the memories of `state`, one per row of q; S is its n_columns().
torch::Tensor fused_attention(const torch::Tensor& q, const MemoryState& state,
                              const ScaledDotProductOptions& options);

struct AttentionResult {
  torch::Tensor output;  // (B, H, T, Dv)
  torch::Tensor
      weights;  // (B, H, T, S): rows sum to 1, with sinks to less, and to 0 where nothing is visible
};

/// The same, step by step. The weights are returned after dropout, as they multiply the values.
AttentionResult explicit_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                   const ScaledDotProductOptions& options = {});

}  // namespace zoo

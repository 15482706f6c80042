#pragma once
// Sums over the past, as linear attentions need them, in time and memory linear in the number of tokens. Many
// tokens are computed in chunks: within a chunk by products of its queries, keys and values, and before it by
// the sum at its beginning. One token is one step of the recurrence. Both give the same.

#include <algorithm>
#include <cstdint>

#include <torch/types.h>

#include "layers/attention/head_projections.h"

namespace zoo {

/// Tokens of a chunk. Fewer tokens are one chunk.
inline constexpr int64_t kChunkLength = 64;

/// The chunks in which the T tokens of a row are computed.
struct Chunks {
  explicit Chunks(int64_t n_tokens)
      : length(std::clamp<int64_t>(n_tokens, 1, kChunkLength)), count((n_tokens + length - 1) / length) {}

  int64_t length, count;

  /// A chunk that is filled up counts in full.
  double tokens() const { return static_cast<double>(length * count); }
};

/// q: (B, H, T, M), k: (B, K, T, M), v: (B, K, T, N); each key head serves H/K query heads.
struct RunningSumsInput {
  torch::Tensor q, k, v;
  /// (B, K, T), at most 0: the logarithm of the factor by which older sums are multiplied at a token.
  /// Undefined: nothing decays.
  torch::Tensor log_decay = {};
  /// (B, K, M, N): the sum before the first token; undefined = 0.
  torch::Tensor before = {};
};

struct RunningSums {
  torch::Tensor output;  // (B, H, T, N): y_t = q_tᵀ S_t
  torch::Tensor sum;     // (B, K, M, N): S after the last token
};

/// S_t = exp(log_decay_t) S_{t-1} + k_t v_tᵀ, y_t = q_tᵀ S_t. An output does not depend on later tokens, to
/// the last bit. A token with k = 0 and log_decay = 0 does not change the sum.
RunningSums running_sums(const RunningSumsInput& input);

/// `x` with zeros behind its columns, dimension 2, up to a multiple of `length`, and divided there into
/// chunks: (B, K, T, …) → (B, K, ⌈T/length⌉, length, …).
torch::Tensor in_chunks(const torch::Tensor& x, int64_t length);

/// Multiply-adds of running_sums() for one row of T tokens, with keys of width `m` and values of width `n`.
double running_sums_products(const HeadSizes& sizes, int64_t n_tokens, int64_t m, int64_t n);

}  // namespace zoo

#pragma once
// Scaled dot-product attention for few queries over many keys, as in decoding: reading the keys and values
// takes most of the time, and they are read once for all query heads that share them.
//
// The result of a row depends on what its queries see only: not on other rows, nor on hidden keys, nor on
// where blocks begin, nor on the number of threads.

#include <optional>

#include <torch/types.h>

#include "kernels/column_blocks.h"

namespace zoo {

struct FewQueriesOptions {
  torch::Tensor visible = {};  // (B or 1, H or 1, T, S) bool; undefined: every query sees every key
  torch::Tensor bias = {};     // (B or 1, H or 1, T, S) float, added to the scores; -∞ hides a key
  double scale = 1;
  std::optional<double> softcap = std::nullopt;  // cap · tanh(score / cap) after the bias
};

/// Whether few_queries_attention() takes these queries (B, H, T, Dh): float, on the CPU, head dimensions
/// contiguous, at most 7 queries, no gradients and no autocast.
bool are_few_queries(const torch::Tensor& q);
/// Whether few_queries_attention() takes these tensors: shapes as below, such queries, keys and values.
bool has_few_queries_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v);

/// softmax(QKᵀ·scale + bias)V over the visible keys. q: (B, H, T, Dh), k: (B, K, S, Dh), v: (B, K, S, Dv), H
/// a multiple of K. Returns (B, H, T, Dv), laid out in memory as (B, T, H, Dv); zeros for queries that see
/// nothing. Throws c10::Error unless has_few_queries_attention().
torch::Tensor few_queries_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                    const FewQueriesOptions& options);
/// The same over keys and values in blocks. `options` has S = keys.n_columns; the columns that a row does not
/// have are hidden from it. Throws c10::Error unless are_few_queries(), or if shapes do not fit.
torch::Tensor few_queries_attention(const torch::Tensor& q, const ColumnBlocks& keys,
                                    const FewQueriesOptions& options);

}  // namespace zoo

#pragma once
// What flows from the data to a model: one batch of token ids with what to predict from them.

#include <vector>

#include <torch/types.h>

namespace zoo {

/// Sequences of token ids, padded on the right to a common length.
struct TokenBatch {
  torch::Tensor ids = {};      // (B, T) int64
  torch::Tensor lengths = {};  // (B) int64, 1 … T; undefined = every row is T long

  bool defined() const { return ids.defined(); }
  int64_t batch_size() const { return ids.size(0); }
  int64_t length() const { return ids.size(1); }
  TokenBatch to(torch::Device device) const;
};

/// A training batch. `targets` are classes: token ids for language tasks, labels for classification.
struct Batch {
  TokenBatch input = {};        // what the encoder, or the decoder of a decoder-only model, reads
  torch::Tensor segments = {};  // (B, T) int64, BERT's sentence A/B; undefined = all 0
  TokenBatch decoder = {};  // what the decoder of an encoder-decoder reads (teacher forcing); else undefined
  torch::Tensor targets = {};  // (N) int64
  /// (N) int64: where each target is predicted, as the flat index b·T + t into the sequence that predicts
  /// (the decoder's if there is one). Undefined: at every position of it in order, N = B·T; or, for
  /// classification with a pooled representation, once per row, N = B.
  torch::Tensor positions = {};
  int64_t tokens = 0;  // real tokens (no padding) that the model reads: budgets and rates count these

  int64_t n_targets() const { return targets.numel(); }
  Batch to(torch::Device device) const;
};

/// Rows `first` … `first` + `count` - 1 of a batch on the CPU. Their `tokens` are 0: it is the whole that is
/// counted.
Batch take_rows(const Batch& batch, int64_t first, int64_t count);

/// One of the parts that split_rows makes: 0 ≤ index < n_parts.
Batch take_part(const Batch& batch, int64_t index, int64_t n_parts);

/// The rows of a batch on the CPU in `n_parts` batches (1 … B) of nearly equally many, as take_rows.
std::vector<Batch> split_rows(const Batch& batch, int64_t n_parts);

}  // namespace zoo

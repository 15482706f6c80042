#pragma once
// Prompts are read in pieces, so that a long one does not hold up the outputs that are being written, and
// what several prompts begin with is read once.

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// States of prompts' beginnings, the least recently used one dropped first. A beginning has a whole number
/// of pieces, so a prompt is read in the same pieces with the cache and without it, and gets the same bits.
class PrefixCache {
 public:
  /// most_bytes: of all states together; 0 = nothing is kept.
  explicit PrefixCache(int64_t most_bytes) : most_bytes_(most_bytes) {}

  /// Whether anything is kept.
  bool is_wanted() const { return most_bytes_ > 0; }
  /// A copy of the state of the longest beginning of `prompt` that is kept and leaves a token to be read.
  std::optional<DecodingState> find(const TokenIds& prompt);
  /// The number of tokens that `prompt` has in common with the beginning that shares most with it.
  int64_t n_shared(const TokenIds& prompt) const;
  /// Keeps a copy of `state`, which has read `beginning`, in one row.
  void keep(TokenIds beginning, const DecodingState& state);

 private:
  struct Entry {
    TokenIds tokens;
    DecodingState state;
  };
  int64_t most_bytes_;
  int64_t bytes_ = 0;
  std::list<Entry> entries_;  // the most recently used one first
};

/// One prompt on its way through a model, alone: what it gets does not depend on other prompts.
class PromptReading {
 public:
  /// `prompt` is not empty, and a decoder's is at most max_length() long. An encoder-decoder reads it at
  /// once. `fields`: as GenerationRequest::fields, with which the prompt may be empty. The references must
  /// outlive this object.
  PromptReading(GenerativeModel& model, torch::Device device, PrefixCache& cache, TokenIds prompt,
                BatchFields fields, int64_t piece);

  /// Reads the next piece. Returns the number of tokens that it had.
  int64_t read();
  /// Reads prompts of one model that are untouched, in one call, padded on the right. Each gets what it gets
  /// alone, up to rounding. The model must continue prompts and keep every token.
  static void read_together(const std::vector<PromptReading*>& prompts);
  /// Whether nothing of it is read, nor known from other prompts.
  bool is_untouched() const { return n_read_ == 0 && fields_.empty(); }
  int64_t size() const { return std::ssize(prompt_); }
  bool is_read() const { return logits_.defined(); }
  /// Once it is read: the state of one row that has read the prompt, and the logits of its next token, (1, V)
  /// float32.
  DecodingState& state() { return state_; }
  const torch::Tensor& logits() const { return logits_; }

 private:
  /// Where the last whole piece ends that leaves a token to be read, in tokens.
  int64_t last_whole_piece() const { return (size() - 1) / piece_ * piece_; }
  void keep_state();
  void keep_beginnings();

  GenerativeModel& model_;
  torch::Device device_;
  PrefixCache& cache_;
  TokenIds prompt_;
  BatchFields fields_;
  int64_t piece_;     // tokens
  int64_t n_shared_;  // whole pieces that an earlier prompt began with, in tokens
  int64_t n_read_ = 0;
  DecodingState state_;
  torch::Tensor logits_;
};

}  // namespace zoo

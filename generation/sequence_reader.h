#pragma once
// Runs the model for a search. Sequences grow by one token at a time, and may be copied and dropped. They may
// become longer than the model sees.

#include <span>
#include <vector>

#include <torch/types.h>

#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// Shortens a sequence of more than `limit` tokens to its last ⌈limit/2⌉. Returns whether it was too long.
bool shorten(TokenIds& sequence, int64_t limit);

/// Reads B sequences with a GenerativeModel and keeps the model's DecodingState up to date.
///
/// A decoder sees at most max_length() tokens. When a sequence becomes longer, the reader drops all but its
/// last ⌈max_length/2⌉ tokens and reads these again. It shortens a prompt that is too long in the same way.
/// Every token is therefore predicted from at least half of max_length() tokens, and each token is read twice
/// on average. The moment depends on the sequence alone, not on its batch. An encoder-decoder must not
/// generate more than max_length() tokens.
class SequenceReader {
 public:
  SequenceReader(GenerativeModel& model, torch::Device device) : model_(model), device_(device) {}

  /// Reads the prompts (for an encoder-decoder: the sources). None may be empty, unless the model reads
  /// recordings, which are in `fields`, one for each prompt. Returns the logits of the next tokens, (B, V)
  /// float32.
  torch::Tensor start(std::vector<TokenIds> prompts, const BatchFields& fields = {});
  /// Sequence i becomes the previous sequence parents[i] with tokens[i] appended. B may change. Returns the
  /// logits of the next tokens, (B, V) float32.
  torch::Tensor advance(std::span<const int64_t> parents, std::span<const int64_t> tokens);

 private:
  TokenBatch padded(const std::vector<TokenIds>& rows) const;

  GenerativeModel& model_;
  torch::Device device_;
  DecodingState state_;
  std::vector<TokenIds> seen_;  // tokens of each sequence that a decoder sees; empty for an encoder-decoder
};

}  // namespace zoo

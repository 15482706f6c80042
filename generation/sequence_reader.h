#pragma once
// The model's side of a search: sequences that grow by one token at a time, are copied and dropped, whatever
// the model and however long they get.

#include <span>
#include <vector>

#include <torch/types.h>

#include "data/text/tokenizer.h"
#include "models/model.h"

namespace zoo {

/// Reads B sequences through a GenerativeModel and keeps its DecodingState in step with them.
///
/// A decoder sees at most max_length() tokens. When a sequence outgrows that, its last ⌈max_length/2⌉ tokens
/// are read again and it goes on from there; the same holds for a prompt that is too long. So a token is
/// always predicted from half of what the model can see or more, and a sequence is read twice on average, not
/// once a token. When this happens depends on the sequence alone, not on the batch it is in. An
/// encoder-decoder must not be asked for more than max_length() tokens.
class SequenceReader {
 public:
  SequenceReader(GenerativeModel& model, torch::Device device) : model_(model), device_(device) {}

  /// Reads the prompts (for an encoder-decoder: the sources), none of them empty. Returns the logits of what
  /// comes next, (B, V) float32.
  torch::Tensor start(std::vector<TokenIds> prompts);
  /// Sequence i becomes what sequence parents[i] was, with tokens[i] appended; B may change. Returns the
  /// logits of what comes next, (B, V) float32.
  torch::Tensor advance(std::span<const int64_t> parents, std::span<const int64_t> tokens);

 private:
  torch::Tensor read();
  TokenBatch padded() const;

  GenerativeModel& model_;
  torch::Device device_;
  DecodingState state_;
  std::vector<TokenIds>
      seen_;            // what the model sees of each sequence; a decoder's grow, an encoder-decoder's do not
  int64_t cached_ = 0;  // columns of a decoder's cache, padding included
};

}  // namespace zoo

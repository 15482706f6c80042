#pragma once
// One text as a model reads it, with teacher forcing: the batch, and the names of its tokens.

#include <optional>
#include <string>
#include <vector>

#include "data/batch.h"
#include "models/model.h"
#include "tasks/task_type.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

struct TextRequest {
  TextLayout layout = TextLayout::tokens;
  std::string text = {};
  /// For source_and_target and question_and_answer; default: the model's greedy output.
  std::optional<std::string> target = {};
};

/// The labels of all tokens include the special ones.
struct TextReading {
  Batch batch;              // one row on the CPU, without targets
  std::string target = {};  // for a model that answers: the given target, or the model's output; else empty
  /// What the encoder reads, or the decoder without an encoder.
  std::vector<std::string> source_tokens = {};
  /// What the decoder of an encoder-decoder reads, its start token first; else empty.
  std::vector<std::string> target_tokens = {};
  /// For a model that answers, the answer's tokens and eos.
  TokenIds target_ids = {};
};

/// Throws DataError if the text has no tokens, cannot be encoded or is too long for the model, UsageError if
/// there is a target but the model does not answer.
TextReading read_text(Model& model, const Tokenizer& tokenizer, const TextRequest& request);

/// The labels of tokens.
std::vector<std::string> labels_of(const Tokenizer& tokenizer, const TokenIds& ids);

}  // namespace zoo

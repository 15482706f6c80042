#pragma once
// Texts in requests, which may also be lists of token ids.

#include <cstddef>
#include <string>
#include <vector>

#include "serving/api/request_fields.h"
#include "serving/served_model.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// Texts, or lists of token ids, which are read as they are.
struct TextsOrIds {
  std::vector<std::string> texts;  // or
  std::vector<TokenIds> ids;
  size_t size() const { return texts.size() + ids.size(); }
};

/// A text, a list of texts, a list of token ids, or a list of such lists; at least one and at most `most`.
/// Throws ApiError.
TextsOrIds read_texts_or_ids(RequestFields& fields, const std::string& key, size_t most);

/// How many tokens a model of texts reads of a text, special ones included: not more than it was trained on.
int64_t n_tokens_read(const ServedModel& model, const std::string& text);

/// Throws RefusedTexts if a text with so many tokens is longer than `most`. `name` is what the message calls
/// it.
void require_length(size_t n_tokens, int64_t most, const std::string& name);

}  // namespace zoo

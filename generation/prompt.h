#pragma once
// What may be given to a model as a prompt.

#include <cstddef>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// A text has more tokens than a model reads.
class TextTooLongError : public DataError {
 public:
  using DataError::DataError;
};

/// Throws DataError if an id of prompt `index` is outside the vocabulary.
void check_prompt_ids(const TokenIds& ids, const Tokenizer& tokenizer, size_t index);

/// The most bytes of a prompt for a model that reads `max_length` tokens: far more than it can read. Tokens
/// of a longer text are not worth the time and the memory that they take.
size_t most_prompt_bytes(int64_t max_length);

/// Throws TextTooLongError if `text` has more bytes than most_prompt_bytes().
void check_prompt_size(std::string_view text, int64_t max_length);

/// The tokens of a prompt, and before them those with which the vocabulary begins a text if the model
/// continues it. Throws DataError as check_prompt_size() and Tokenizer::encode().
TokenIds encode_prompt(const Tokenizer& tokenizer, std::string_view text, const GenerativeModel& model);

/// The token that a decoder reads in the place of an empty prompt: see model_input().
int64_t token_of_empty_prompt(const Tokenizer& tokenizer);

/// The tokens that `model` reads, given those of encode_prompt(). A decoder reads them as they are; if there
/// are none, it reads eos, because documents follow eos in training; without eos bos, else a line break, else
/// the first token. A model that answers reads them in the vocabulary's frame, or them and eos. Throws
/// TextTooLongError if they are too many for a model that answers; `name` is what the message calls them,
/// such as "prompt 3". Throws UsageError if the model reads recordings. `frame`: in place of the
/// vocabulary's.
TokenIds model_input(TokenIds prompt, const Tokenizer& tokenizer, const GenerativeModel& model,
                     std::string_view name, const std::optional<TextFrame>& frame);
/// The same with the vocabulary's own frame.
TokenIds model_input(TokenIds prompt, const Tokenizer& tokenizer, const GenerativeModel& model,
                     std::string_view name);

/// A single text within its frame: before, ids, after.
TokenIds framed(const TextFrame& frame, TokenIds ids);

/// `text`, or its first most_prompt_bytes() bytes (the last ones, if it is cut at the left), in whole
/// characters. For a model that reads only `max_length` tokens of a text.
std::string_view part_to_read(std::string_view text, int64_t max_length, TextEnd cut_at = TextEnd::right);

}  // namespace zoo

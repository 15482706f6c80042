#pragma once
// A text as the tokens that a model reads, in the layout of its training (TextLayout).

#include <cstdint>
#include <string_view>

#include "tasks/task_type.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// The ids of `text` without special tokens around it. Where the layout has masks and the vocabulary, too,
/// `<mask>` in the text is the mask token. Throws DataError as Tokenizer::encode().
TokenIds encode_text(const Tokenizer& tokenizer, std::string_view text, TextLayout layout);

/// `ids` with the special tokens of the layout: the whole input of an encoder, or of a model with one stack;
/// for question_and_answer the question. A vocabulary that says itself what stands around a text
/// (Tokenizer::frame()) decides in place of the layout. Throws DataError if the vocabulary lacks one of these
/// tokens.
TokenIds with_special_tokens(const Tokenizer& tokenizer, TokenIds ids, TextLayout layout);
/// How many tokens with_special_tokens() adds.
int64_t n_special_tokens(const Tokenizer& tokenizer, TextLayout layout);

/// Throws DataError unless the vocabulary has a special token: `id` ≥ 0. `token` is its name for people.
void require_special_token(int64_t id, std::string_view token);

}  // namespace zoo

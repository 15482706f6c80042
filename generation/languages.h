#pragma once
// The languages of translators between many, which their vocabularies have tokens for: M2M100, NLLB, mBART.

#include <cstdint>
#include <string>

#include "tokenizers/tokenizer.h"

namespace zoo {

/// The token of a language. `code` is what the vocabulary writes: "deu_Latn" (NLLB), "de_DE" (mBART), or "de"
/// for __de__ (M2M100). Throws UsageError if there is none.
int64_t language_token(const Tokenizer& tokenizer, const std::string& code);

/// Whether a token names a language.
bool is_language(const Tokenizer& tokenizer, int64_t id);

/// What stands around a text in this language: the vocabulary's frame with another language. Throws
/// UsageError, also if the frame has no language.
TextFrame frame_in_language(const Tokenizer& tokenizer, const std::string& code);

}  // namespace zoo

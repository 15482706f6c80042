#pragma once

#include "data/text/tokenizer.h"

namespace zoo {

/// The special tokens that must not be generated: all except eos.
TokenIds tokens_without_text(const SpecialTokens& special);

/// Throws DataError if an id of prompt `index` is outside the vocabulary.
void check_prompt_ids(const TokenIds& ids, const Tokenizer& tokenizer, size_t index);

}  // namespace zoo

#pragma once
// Texts as an encoder of texts reads them.

#include <cstdint>
#include <string>
#include <vector>

#include "data/batch.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// The tokens of a text in the vocabulary's frame, or before its end token if the vocabulary has no frame; at
/// most `most_tokens`, of which those of the frame are kept. Throws DataError as Tokenizer::encode(), and if
/// nothing stands around texts.
std::vector<int64_t> text_row(const Tokenizer& tokenizer, const std::string& text, int64_t most_tokens);

/// Such rows as one batch, padded on the right.
TokenBatch text_batch(const Tokenizer& tokenizer, const std::vector<std::vector<int64_t>>& rows);

}  // namespace zoo

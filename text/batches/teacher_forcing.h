#pragma once
// What the decoder of an encoder-decoder reads and predicts.

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "data/batch.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// Throws DataError if the vocabulary lacks <pad>, <eos> or what a decoder begins with; `task` needs them.
void require_teacher_forcing(const SpecialTokens& special, const char* task);

/// Sets the parts of a batch that are about the decoder, with a row for each text: `decoder`, the start token
/// and the text; `targets`, the text and eos; `positions`, where rows are padded.
void add_teacher_forcing(Batch& batch, const std::vector<TokenIds>& texts, const SpecialTokens& special);

/// The flat indices where targets are predicted: `counts[b]` positions of row b from `firsts[b]` on, in rows
/// of `width`.
torch::Tensor flat_positions(const std::vector<int64_t>& firsts, const std::vector<int64_t>& counts,
                             int64_t width);

}  // namespace zoo

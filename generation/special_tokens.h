#pragma once

#include "data/text/tokenizer.h"

namespace zoo {

/// The special tokens that must not be generated: all except eos.
TokenIds tokens_without_text(const SpecialTokens& special);

}  // namespace zoo

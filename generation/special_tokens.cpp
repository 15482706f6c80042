#include "generation/special_tokens.h"

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {

TokenIds tokens_without_text(const SpecialTokens& special) {
  TokenIds result;
  for (const int64_t id : {special.pad, special.unk, special.bos, special.mask, special.cls, special.sep}) {
    if (id >= 0 && id != special.eos) result.push_back(id);
  }
  return result;
}

void check_prompt_ids(const TokenIds& ids, const Tokenizer& tokenizer, size_t index) {
  for (const int64_t id : ids) {
    if (id >= 0 && id < tokenizer.vocab_size()) continue;
    throw DataError(fmt::format("prompt {}: {} is not a token id: this vocabulary has 0 to {}", index + 1, id,
                                tokenizer.vocab_size() - 1));
  }
}

}  // namespace zoo

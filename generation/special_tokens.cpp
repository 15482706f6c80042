#include "generation/special_tokens.h"

namespace zoo {

TokenIds tokens_without_text(const SpecialTokens& special) {
  TokenIds result;
  for (const int64_t id : {special.pad, special.unk, special.bos, special.mask, special.cls, special.sep}) {
    if (id >= 0 && id != special.eos) result.push_back(id);
  }
  return result;
}

}  // namespace zoo

#include "analysis/text_layout.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generation/prompt.h"

namespace zoo {

TokenIds encode_text(const Tokenizer& tokenizer, std::string_view text, TextLayout layout) {
  const bool may_be_masked = layout == TextLayout::cls_tokens_sep && tokenizer.special().mask >= 0;
  return may_be_masked ? tokenizer.encode_masked(text) : tokenizer.encode(text);
}

TokenIds with_special_tokens(const Tokenizer& tokenizer, TokenIds ids, TextLayout layout) {
  if (const auto frame = tokenizer.frame()) return framed(*frame, std::move(ids));
  const auto& special = tokenizer.special();
  switch (layout) {
    case TextLayout::tokens:
      break;
    case TextLayout::tokens_eos:
    case TextLayout::source_and_target:
    case TextLayout::question_and_answer:
      require_special_token(special.eos, "<eos>");
      ids.push_back(special.eos);
      break;
    case TextLayout::cls_tokens_sep:
      require_special_token(special.cls, "<cls>");
      require_special_token(special.sep, "<sep>");
      ids.insert(ids.begin(), special.cls);
      ids.push_back(special.sep);
      break;
  }
  return ids;
}

int64_t n_special_tokens(const Tokenizer& tokenizer, TextLayout layout) {
  if (const auto frame = tokenizer.frame()) return std::ssize(frame->before) + std::ssize(frame->after);
  switch (layout) {
    case TextLayout::tokens:
      return 0;
    case TextLayout::cls_tokens_sep:
      return 2;
    default:
      return 1;
  }
}

void require_special_token(int64_t id, std::string_view token) {
  if (id >= 0) return;
  throw DataError(fmt::format("the tokenizer has no {}: this kind of model needs it around a text", token));
}

}  // namespace zoo

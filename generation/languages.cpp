#include "generation/languages.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

bool has_letters(std::string_view text, size_t least, size_t most, char first, char last) {
  return text.size() >= least && text.size() <= most &&
         std::ranges::all_of(text, [&](char c) { return c >= first && c <= last; });
}

/// The code of a language in the text of its token: "de_DE", "deu_Latn", "de" of "__de__".
std::optional<std::string> code_in(std::string_view label) {
  constexpr std::string_view around = "__";
  if (label.starts_with(around) && label.ends_with(around) && label.size() > 2 * around.size()) {
    const auto code = label.substr(around.size(), label.size() - 2 * around.size());
    return has_letters(code, 2, 3, 'a', 'z') ? std::optional(std::string(code)) : std::nullopt;
  }
  const size_t middle = label.find('_');
  if (middle == label.npos || !has_letters(label.substr(0, middle), 2, 3, 'a', 'z')) return std::nullopt;
  const auto rest = label.substr(middle + 1);
  const bool is_country = has_letters(rest, 2, 2, 'A', 'Z');
  const bool is_script = rest.size() == 4 && has_letters(rest.substr(0, 1), 1, 1, 'A', 'Z') &&
                         has_letters(rest.substr(1), 3, 3, 'a', 'z');
  return is_country || is_script ? std::optional(std::string(label)) : std::nullopt;
}

/// The place of a language in a frame.
int64_t* language_in(TextFrame& frame, const Tokenizer& tokenizer) {
  for (auto* const ids : {&frame.before, &frame.after}) {
    for (auto& id : *ids)
      if (is_language(tokenizer, id)) return &id;
  }
  return nullptr;
}

/// " such as deu_Latn", where the frame has a language.
std::string example_of(const Tokenizer& tokenizer) {
  auto frame = tokenizer.frame().value_or(TextFrame{});
  const auto* const id = language_in(frame, tokenizer);
  return id ? fmt::format(": write a code such as {}", *code_in(tokenizer.label(*id))) : std::string();
}

}  // namespace

int64_t language_token(const Tokenizer& tokenizer, const std::string& code) {
  for (const auto& text : {code, "__" + code + "__"}) {
    if (code_in(text) != code) continue;
    const auto ids = tokenizer.encode(text);
    if (ids.size() == 1 && tokenizer.label(ids.front()) == text) return ids.front();
  }
  throw UsageError(
      fmt::format("'{}' is no language of this vocabulary{}", excerpt(code), example_of(tokenizer)));
}

bool is_language(const Tokenizer& tokenizer, int64_t id) { return code_in(tokenizer.label(id)).has_value(); }

TextFrame frame_in_language(const Tokenizer& tokenizer, const std::string& code) {
  auto frame = tokenizer.frame().value_or(TextFrame{});
  auto* const id = language_in(frame, tokenizer);
  if (!id) throw UsageError("source_language: this vocabulary puts no language beside texts: leave it out");
  *id = language_token(tokenizer, code);
  return frame;
}

}  // namespace zoo

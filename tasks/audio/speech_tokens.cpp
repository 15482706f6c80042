#include "tasks/audio/speech_tokens.h"

#include <algorithm>
#include <string_view>

namespace zoo {
namespace {

/// The text between <| and |>; empty for another label.
std::string_view name_in(std::string_view label) {
  constexpr std::string_view begin = "<|", end = "|>";
  if (!label.starts_with(begin) || !label.ends_with(end) || label.size() < begin.size() + end.size())
    return {};
  return label.substr(begin.size(), label.size() - begin.size() - end.size());
}

/// Codes of languages have two or three letters.
bool is_language(std::string_view name) {
  return (name.size() == 2 || name.size() == 3) &&
         std::ranges::all_of(name, [](char c) { return c >= 'a' && c <= 'z'; });
}

}  // namespace

std::optional<std::string> SpeechTokens::language_of(int64_t id) const {
  const auto found = std::ranges::find(languages, id, [](const auto& known) { return known.second; });
  return found == languages.end() ? std::nullopt : std::optional(found->first);
}

SpeechTokens speech_tokens(const Tokenizer& tokenizer) {
  SpeechTokens tokens;
  for (int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const auto label = tokenizer.label(id);
    const auto name = name_in(label);
    if (name.empty()) continue;
    if (name == "transcribe") tokens.transcribe = id;
    if (name == "translate") tokens.translate = id;
    if (name == "notimestamps") tokens.no_times = id;
    if (name == "0.00") tokens.first_time = id;
    if (is_language(name)) tokens.languages.emplace(name, id);
  }
  return tokens;
}

}  // namespace zoo

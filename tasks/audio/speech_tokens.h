#pragma once
// The tokens with which a model of recordings is told what to write, as Whisper has them (Radford et al.
// 2022).

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "tokenizers/tokenizer.h"

namespace zoo {

/// The tokens that a vocabulary has for that.
struct SpeechTokens {
  std::map<std::string, int64_t> languages = {};  // by code: "de" of <|de|>
  std::optional<int64_t> transcribe = {}, translate = {};
  std::optional<int64_t> no_times = {};    // <|notimestamps|>
  std::optional<int64_t> first_time = {};  // <|0.00|>, which all other times follow

  /// The code of the language that a token names.
  std::optional<std::string> language_of(int64_t id) const;
};
SpeechTokens speech_tokens(const Tokenizer& tokenizer);

}  // namespace zoo

#pragma once
// What happens to a text before it is cut: the member "normalizer" of a tokenizer.json.

#include <functional>
#include <optional>

#include <nlohmann/json.hpp>

#include "tokenizers/subwords/aligned_text.h"

namespace zoo {

struct Normalizer {
  /// Changes a text, which is UTF-8.
  std::function<void(AlignedText& text)> apply;
  /// Whether a text that is cut before a blank between two letters of ASCII changes in the same way in both
  /// parts, and keeps the blank.
  bool keeps_to_words = false;
};

/// NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, BertNormalizer, Precompiled, Nmt,
/// ByteLevel, Sequence; nothing for null. Throws DataError for another one, nlohmann's exceptions for a
/// damaged one.
std::optional<Normalizer> make_normalizer(const nlohmann::json& part);

}  // namespace zoo

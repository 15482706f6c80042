#pragma once
// What happens to a text before it is cut: the member "normalizer" of a tokenizer.json.

#include <memory>

#include <nlohmann/json.hpp>

#include "tokenizers/subwords/aligned_text.h"

namespace zoo {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// Changes `text`, which is UTF-8.
  virtual void apply(AlignedText& text) const = 0;
  /// Whether a text that is cut before a blank between two letters of ASCII changes in the same way in both
  /// parts, and keeps the blank.
  virtual bool keeps_to_words() const { return false; }
};

/// NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, BertNormalizer, Precompiled, Nmt,
/// ByteLevel, Sequence; nothing for null. Throws DataError for another one, nlohmann's exceptions for a
/// damaged one.
std::unique_ptr<Normalizer> make_normalizer(const nlohmann::json& part);

}  // namespace zoo

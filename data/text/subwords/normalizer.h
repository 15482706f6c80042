#pragma once
// What happens to a text before it is cut: the member "normalizer" of a tokenizer.json.

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

namespace zoo {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// Changes `text`, which is UTF-8.
  virtual void apply(std::string& text) const = 0;
};

/// NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, BertNormalizer, Sequence; nothing
/// for null. Throws DataError for another one, nlohmann's exceptions for a damaged one.
std::unique_ptr<Normalizer> make_normalizer(const nlohmann::json& part);

}  // namespace zoo

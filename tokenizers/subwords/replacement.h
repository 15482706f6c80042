#pragma once
// A pattern of a tokenizer.json, {"String": "…"} or {"Regex": "…"}, and what takes its place.

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tokenizers/unicode/pattern.h"

namespace zoo {

class TextPattern {
 public:
  /// Throws DataError, or nlohmann's exceptions, for a pattern that is damaged or not supported.
  explicit TextPattern(const nlohmann::json& pattern);
  /// Calls `use` with the bytes of each match, from left to right.
  void for_each_match(std::string_view text, const std::function<void(size_t begin, size_t end)>& use) const;
  /// `text` with `content` for each match.
  std::string replaced(std::string_view text, std::string_view content) const;

 private:
  std::string literal_;
  std::optional<Pattern> pattern_;
};

}  // namespace zoo

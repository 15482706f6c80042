#include "tokenizers/hub/places.h"

#include <algorithm>

#include "tokenizers/subwords/specification.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

/// A blank, or the character that stands for one in byte-level vocabularies.
bool is_trimmed(char32_t c) {
  constexpr char32_t blank_of_bytes = 0x120;
  return c == blank_of_bytes || is_white_space(c);
}

size_t blanks_before(std::string_view token) {
  size_t n = 0;
  for (size_t at = 0; at < token.size() && is_trimmed(next_code_point(token, at));) ++n;
  return n;
}

size_t blanks_after(std::string_view token) {
  size_t n = 0;
  for (size_t end = token.size(); end > 0 && is_trimmed(previous_code_point(token, end));) ++n;
  return n;
}

}  // namespace

void to_code_points(std::string_view text, std::vector<PlacedToken>& tokens) {
  std::vector<uint32_t> index(text.size());  // of the code point that each byte belongs to
  uint32_t n = 0;
  for (size_t at = 0; at < text.size(); ++n) {
    const size_t begin = at;
    next_code_point(text, at);
    std::fill(index.begin() + static_cast<ptrdiff_t>(begin), index.begin() + static_cast<ptrdiff_t>(at), n);
  }
  for (auto& token : tokens) {
    if (token.begin >= text.size()) continue;  // as in tokenizers
    const size_t begin = index[token.begin];
    if (token.end < text.size()) {
      token.end = index[token.end];
    } else {
      token.end = token.end == text.size() ? n : begin + 2;
    }
    token.begin = begin;
  }
}

std::vector<bool> trims_of_places(const nlohmann::json& post_processor) {
  std::vector<bool> trims;
  if (post_processor.is_null()) return trims;
  const auto type = type_of(post_processor);
  if (type == "Sequence") {
    for (const auto& part : post_processor.at("processors")) {
      for (const bool adds_blank : trims_of_places(part)) trims.push_back(adds_blank);
    }
  } else if ((type == "ByteLevel" || type == "RobertaProcessing") &&
             option(post_processor, "trim_offsets", true)) {
    trims.push_back(option(post_processor, "add_prefix_space", true));
  }
  return trims;
}

void trim_places(const std::vector<std::string>& texts, bool adds_blank, std::vector<PlacedToken>& tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto& [id, begin, end] = tokens[i];
    size_t before = blanks_before(texts[i]);
    const size_t after = blanks_after(texts[i]);
    const bool is_first = i == 0 || begin == 0;
    if (is_first && adds_blank && before == 1) before = 0;
    if (before > 0) begin = std::min(begin + before, end);
    if (after > 0 && end >= after) end = std::max(end - after, begin);
  }
}

}  // namespace zoo

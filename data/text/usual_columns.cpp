#include "data/text/usual_columns.h"

#include <array>
#include <utility>

namespace zoo {
namespace {

std::string in_lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

}  // namespace

std::optional<std::string> find_column(const std::vector<std::string>& header,
                                       std::initializer_list<std::string_view> usual) {
  for (const auto name : usual) {
    for (const auto& column : header) {
      if (in_lower_case(column) == name) return column;
    }
  }
  return std::nullopt;
}

std::optional<PairColumns> find_pair_columns(const std::vector<std::string>& header) {
  constexpr auto pairs = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"sentence1", "sentence2"},
      {"sentence_a", "sentence_b"},
      {"premise", "hypothesis"},
      {"question1", "question2"},
      {"text1", "text2"},
      {"text_a", "text_b"},
      {"text", "text_pair"},
      {"query", "passage"},
      {"query", "document"},
      {"question", "sentence"},
      {"question", "passage"},
      {"question", "answer"},
  });
  for (const auto& [one, other] : pairs) {
    const auto first = find_column(header, {one}), second = find_column(header, {other});
    if (!first || !second) continue;
    return PairColumns{.first = *first,
                       .second = *second,
                       .label = find_column(header, {"label", "gold_label", "labels", "class", "category",
                                                     "relation", "target", "is_duplicate", "score",
                                                     "similarity", "similarity_score", "relatedness_score"})};
  }
  return std::nullopt;
}

}  // namespace zoo

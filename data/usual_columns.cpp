#include "data/usual_columns.h"

#include <array>
#include <utility>

#include "base/text.h"

namespace zoo {
namespace {

/// Whether a column is called as what only tells rows apart, or says where they come from.
bool is_name_of_rows(const std::string& column) {
  return column.empty() ||
         find_column({column}, {"id", "idx", "index", "guid", "uid", "uuid", "key", "row", "number", "no",
                                "nr", "#", "unnamed: 0", "url", "date", "time", "timestamp"}) ||
         find_picture_column({column});
}

}  // namespace

std::optional<std::string> find_column(const std::vector<std::string>& header,
                                       std::initializer_list<std::string_view> usual) {
  for (const auto name : usual) {
    for (const auto& column : header) {
      if (ascii_lower(column) == name) return column;
    }
  }
  return std::nullopt;
}

std::optional<std::string> find_picture_column(const std::vector<std::string>& header) {
  return find_column(header, {"image", "image_path", "img_path", "img", "file_name", "filename", "file_path",
                              "filepath", "file", "path"});
}

std::optional<std::string> find_text_column(const std::vector<std::string>& header) {
  return find_column(header, {"text", "sentence", "review", "comment", "content", "message", "title"});
}

std::optional<std::string> find_label_column(const std::vector<std::string>& header) {
  const auto found =
      find_column(header, {"label", "class", "category", "sentiment", "rating", "target", "labels"});
  if (found || header.size() > 2) return found;
  return find_column(header, {"tags", "genres", "topics", "categories", "score", "similarity", "stars"});
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

std::optional<LabelledColumns> find_labelled_columns(const std::vector<std::string>& header) {
  if (const auto pair = find_pair_columns(header); pair && pair->label)
    return LabelledColumns{.text = pair->first, .label = *pair->label, .second = pair->second};
  auto text = find_text_column(header);
  auto label = find_label_column(header);
  if (header.size() == 2) {
    if (text && !label) label = header[0] == *text ? header[1] : header[0];
    if (label && !text) text = header[0] == *label ? header[1] : header[0];
  }
  if (!text || !label || is_name_of_rows(*text) || is_name_of_rows(*label)) return std::nullopt;
  return LabelledColumns{.text = *text, .label = *label};
}

}  // namespace zoo

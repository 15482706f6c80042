#pragma once
// Which columns of a table hold what, by the names that people usually give them.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// The first of `usual` that the header has, as it is written there, whatever the case of its letters.
std::optional<std::string> find_column(const std::vector<std::string>& header,
                                       std::initializer_list<std::string_view> usual);

/// The column of paths of pictures.
std::optional<std::string> find_picture_column(const std::vector<std::string>& header);

/// The column of texts.
std::optional<std::string> find_text_column(const std::vector<std::string>& header);
/// The column of labels. Names such as score or topics count only in a table of two columns: in others they
/// often are facts about the texts.
std::optional<std::string> find_label_column(const std::vector<std::string>& header);

/// The columns of a table of pairs of texts, such as sentence1 and sentence2, or premise and hypothesis.
struct PairColumns {
  std::string first, second;
  std::optional<std::string> label;  // a class, or a number
};
std::optional<PairColumns> find_pair_columns(const std::vector<std::string>& header);

/// The columns of a table of texts, or of pairs of texts, with labels.
struct LabelledColumns {
  std::string text, label;
  std::string second = {};  // of pairs
};
/// In a table of two columns the name of one of them is enough, unless the other one is called as numbers of
/// rows or paths of files are, such as id.
std::optional<LabelledColumns> find_labelled_columns(const std::vector<std::string>& header);

}  // namespace zoo

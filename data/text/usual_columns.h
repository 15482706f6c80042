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

/// The columns of a table of pairs of texts, such as sentence1 and sentence2, or premise and hypothesis.
struct PairColumns {
  std::string first, second;
  std::optional<std::string> label;  // a class, or a number
};
std::optional<PairColumns> find_pair_columns(const std::vector<std::string>& header);

}  // namespace zoo

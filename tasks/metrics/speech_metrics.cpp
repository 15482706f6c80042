#include "tasks/metrics/speech_metrics.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "base/text.h"
#include "tasks/metrics/white_space.h"

namespace zoo {
namespace {

template <class Symbol>
EditCount edits(const std::vector<Symbol>& reference, const std::vector<Symbol>& output) {
  // row[j]: the edits between the first i symbols of the reference and the first j of the output.
  std::vector<int64_t> row(output.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (size_t i = 0; i < reference.size(); ++i) {
    int64_t diagonal = row[0];
    row[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < output.size(); ++j) {
      const int64_t replaced = diagonal + (reference[i] == output[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j + 1] + 1, row[j] + 1});
    }
  }
  return {.edits = row.back(), .reference = std::ssize(reference)};
}

/// The code points without white space at both ends.
std::u32string_view stripped(std::u32string_view text) {
  while (!text.empty() && is_python_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_python_space(text.back())) text.remove_suffix(1);
  return text;
}

/// Words are separated by blanks, or by two characters or more of any white space; one of another kind, such
/// as a tab, is part of a word.
std::vector<std::u32string> words_of(std::u32string_view text) {
  std::vector<std::u32string> words(1);
  text = stripped(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const bool separates =
        text[i] == U' ' || (is_python_space(text[i]) &&
                            ((i > 0 && is_python_space(text[i - 1])) || is_python_space(text[i + 1])));
    if (!separates) {
      words.back() += text[i];
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

}  // namespace

double EditCount::rate() const {
  return static_cast<double>(edits) / static_cast<double>(std::max<int64_t>(reference, 1));
}

EditCount& EditCount::operator+=(const EditCount& other) {
  edits += other.edits;
  reference += other.reference;
  return *this;
}

EditCount word_edits(std::string_view reference, std::string_view output) {
  return edits(words_of(decode_utf8(reference)), words_of(decode_utf8(output)));
}

EditCount character_edits(std::string_view reference, std::string_view output) {
  const auto characters_of = [](std::string_view text) {
    const auto all = decode_utf8(text);
    const auto kept = stripped(all);
    return std::vector<char32_t>(kept.begin(), kept.end());
  };
  return edits(characters_of(reference), characters_of(output));
}

}  // namespace zoo

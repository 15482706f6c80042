#pragma once
// Blanks as Python has them, which classes of transformers remove.

#include <cstddef>
#include <string_view>

#include "tokenizers/unicode/characters.h"

namespace zoo {

/// What str.strip() removes, and what \s of its expressions is.
inline bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

/// The part of a text without blanks at its ends.
inline std::string_view stripped(std::string_view text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  for (size_t next = begin; left && begin < end; begin = next) {
    if (!is_python_space(next_code_point(text, next))) break;
  }
  for (size_t before = end; right && begin < end; end = before) {
    if (!is_python_space(previous_code_point(text, before))) break;
  }
  return text.substr(begin, end - begin);
}

}  // namespace zoo

#pragma once

#include <string>

namespace zoo {

/// The bytes that a token adds to a text; a token may hold a part of a character.
struct TokenText {
  std::string first;  // at the beginning of a text, where the blank of a word may be left out
  std::string later;  // after other tokens
};

}  // namespace zoo

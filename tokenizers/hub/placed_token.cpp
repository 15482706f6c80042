#include "tokenizers/hub/placed_token.h"

#include "tokenizers/unicode/characters.h"

namespace zoo {

void in_code_points(std::string_view text, std::vector<PlacedToken>& tokens) {
  std::vector<size_t> numbers(text.size() + 1);  // of the code point that a byte belongs to
  size_t n = 0;
  for (size_t at = 0; at < text.size(); ++n) {
    const size_t begin = at;
    next_code_point(text, at);
    for (size_t i = begin; i < at; ++i) numbers[i] = n;
  }
  numbers.back() = n;
  for (auto& token : tokens) {
    token.begin = numbers.at(token.begin);
    token.end = numbers.at(token.end);
  }
}

}  // namespace zoo

#pragma once
// What stands around texts in a model's input.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

namespace zoo {

/// The tokens around a text: before A after. Around a pair of texts: before A between B after. The segment of
/// all tokens up to `between` is 0, that of B and of `after` in a pair is `second_segment`.
struct TextFrame {
  std::vector<int64_t> before, between, after;
  int64_t second_segment = 1;

  /// The numbers of tokens around one text and around a pair.
  int64_t n_tokens() const { return std::ssize(before) + std::ssize(after); }
  int64_t n_tokens_of_pair() const { return n_tokens() + std::ssize(between); }
  /// Whether this token stands around texts or pairs.
  bool contains(int64_t id) const {
    const auto is_in = [&](const std::vector<int64_t>& ids) {
      return std::ranges::find(ids, id) != ids.end();
    };
    return is_in(before) || is_in(between) || is_in(after);
  }
};

}  // namespace zoo

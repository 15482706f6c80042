#pragma once
// What stands around texts in a model's input.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

namespace zoo {

/// The end of a text where what is too much is cut off (truncation_side).
enum class TextEnd { left, right };
/// Whether TextFrame tells all of a template of pairs, or not its segments, or not its tokens.
enum class PairTemplate { told, other_segments, other_tokens };

/// The tokens around a text: before A after. Around a pair of texts: before A between B after. The segment of
/// all tokens up to `between` is 0, that of B and of `after` in a pair is `second_segment`.
struct TextFrame {
  std::vector<int64_t> before, between, after;
  int64_t second_segment = 1;
  PairTemplate pair = PairTemplate::told;
  TextEnd cut_at = TextEnd::right;

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
  /// The `n` tokens of a text that are left when it is cut; n: at most all.
  std::span<const int64_t> kept(std::span<const int64_t> ids, int64_t n) const {
    const auto count = static_cast<size_t>(n);
    return cut_at == TextEnd::left ? ids.last(count) : ids.first(count);
  }
};

}  // namespace zoo

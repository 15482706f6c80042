#include "tasks/text/text_slices.h"

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

/// The number of the first slice of a kind.
constexpr uint8_t first_of(SliceKind kind) {
  uint8_t n = 0;
  while (kTextSlices[n].kind != kind) ++n;
  return n;
}

/// Written without blanks between words.
bool is_word_alone(char32_t c) {
  return (c >= 0x3040 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x20000 && c <= 0x323AF);
}

bool is_latin(char32_t c) {
  return c < 0x250 || (c >= 0x300 && c <= 0x36F) || (c >= 0x1E00 && c <= 0x1EFF) ||
         (c >= 0x2C60 && c <= 0x2C7F) || (c >= 0xA720 && c <= 0xA7FF) || (c >= 0xFF21 && c <= 0xFF5A);
}

bool is_of_word(char32_t c) { return c != '_' && is_word_character(c); }

uint8_t slice_of_character(char32_t c) {
  constexpr uint8_t latin = first_of(SliceKind::characters), other = latin + 1, digit = latin + 2,
                    sign = latin + 3, space = latin + 4;
  if (is_white_space(c)) return space;
  if (is_number(c)) return digit;
  if (!is_of_word(c)) return sign;
  return is_latin(c) ? latin : other;
}

uint8_t slice_of_frequency(int64_t count) {
  constexpr uint8_t once = first_of(SliceKind::frequency);
  return static_cast<uint8_t>(count < 2 ? once : count < 10 ? once + 1 : count < 100 ? once + 2 : once + 3);
}

uint8_t slice_of_length(size_t n_characters) {
  constexpr uint8_t shortest = first_of(SliceKind::length);
  return static_cast<uint8_t>(shortest + (n_characters < 4    ? 0
                                          : n_characters < 7  ? 1
                                          : n_characters < 10 ? 2
                                                              : 3));
}

/// A character, or a word of several, in a text.
struct Piece {
  size_t begin, end;
  size_t n_characters;
  bool is_word;
  char32_t first;
};

/// Calls `use` with the words of a text and the characters between them, in order.
void for_pieces(std::string_view text, const std::function<void(const Piece&)>& use) {
  for (size_t at = 0; at < text.size();) {
    Piece piece{.begin = at, .end = at, .n_characters = 1, .is_word = false, .first = 0};
    piece.first = next_code_point(text, at);
    piece.is_word = is_of_word(piece.first);
    while (piece.is_word && !is_word_alone(piece.first) && at < text.size()) {
      size_t next = at;
      const char32_t c = next_code_point(text, next);
      if (!is_of_word(c) || is_word_alone(c)) break;
      at = next;
      ++piece.n_characters;
    }
    piece.end = at;
    use(piece);
  }
}

std::string word_of(std::string_view text, const Piece& piece) {
  return ascii_lower(text.substr(piece.begin, piece.end - piece.begin));
}

}  // namespace

size_t slice_of_position(int64_t n_read, int64_t length) {
  constexpr int64_t quarters = 4;
  const int64_t quarter = length > 0 ? quarters * (n_read - 1) / length : 0;
  return static_cast<size_t>(first_of(SliceKind::position) + std::clamp<int64_t>(quarter, 0, quarters - 1));
}

void WordCounts::add(std::string_view text) {
  for_pieces(text, [&](const Piece& piece) {
    if (piece.is_word) ++counts_[word_of(text, piece)];
  });
}

int64_t WordCounts::of(const std::string& word) const {
  const auto found = counts_.find(word);
  return found == counts_.end() ? 0 : found->second;
}

std::vector<ByteSlices> TextSlicer::next(std::string_view part) {
  std::vector<ByteSlices> slices(part.size());
  for_pieces(part, [&](const Piece& piece) {
    ByteSlices all;
    all.fill(kNoSlice);
    if (piece.is_word) {
      constexpr uint8_t seen = first_of(SliceKind::novelty);
      const auto word = word_of(part, piece);
      const auto before = last_.find(word);
      const bool is_seen = before != last_.end() && at_ + piece.begin - before->second <= kSeenBytes;
      all[0] = slice_of_frequency(counts_.of(word));
      all[1] = is_seen ? seen : seen + 1;
      all[3] = slice_of_length(piece.n_characters);
      last_[word] = at_ + piece.end;
    }
    for (size_t at = piece.begin; at < piece.end;) {
      size_t next = at;
      all[2] = slice_of_character(next_code_point(part, next));
      for (; at < next; ++at) slices[at] = all;
    }
  });
  at_ += part.size();
  return slices;
}

}  // namespace zoo

#include "tokenizers/unicode/characters.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <vector>

#include "tokenizers/unicode/tables.h"

namespace zoo {
namespace {

/// One bit for each table of classes.
enum ClassBit : uint16_t {
  bert_removed_bit = 1,
  bert_nonspacing_bit = 2,
  bert_punctuation_bit = 4,
  combining_bit = 8,
  numeric_bit = 16,
  word_bit = 32,
  white_space_bit = 64,
  extending_bit = 128,
  preceding_bit = 256,
  stand_in_bit = 512
};

/// The bits of all code points, in blocks of 256, of which equal ones are kept once.
class CharacterClasses {
 public:
  CharacterClasses() {
    std::vector<uint16_t> bits(code_points);
    const auto set = [&](std::span<const CodeRange> ranges, ClassBit bit) {
      for (const auto& [first, last] : ranges) {
        for (char32_t c = first; c <= last; ++c) bits[c] |= bit;
      }
    };
    set(bert_removed_table(), bert_removed_bit);
    set(bert_nonspacing_table(), bert_nonspacing_bit);
    set(bert_punctuation_table(), bert_punctuation_bit);
    set(combining_table(), combining_bit);
    set(numeric_table(), numeric_bit);
    set(word_table(), word_bit);
    set(white_space_table(), white_space_bit);
    set(grapheme_extending_table(), extending_bit);
    set(grapheme_preceding_table(), preceding_bit);
    for (const auto& range : stand_in_table()) {
      for (char32_t c = range.first; c <= range.last; ++c) bits[c] |= stand_in_bit;
    }
    std::map<Block, uint16_t> known;
    for (size_t i = 0; i < block_of_.size(); ++i) {
      Block block;
      std::copy_n(bits.begin() + static_cast<ptrdiff_t>(i * 256), 256, block.begin());
      const auto [found, is_new] = known.emplace(block, static_cast<uint16_t>(blocks_.size()));
      if (is_new) blocks_.push_back(block);
      block_of_[i] = found->second;
    }
  }

  bool has(char32_t c, ClassBit bit) const {
    return c < code_points && (blocks_[block_of_[c >> 8]][c & 0xFF] & bit) != 0;
  }

 private:
  static constexpr char32_t code_points = 0x110000;
  using Block = std::array<uint16_t, 256>;
  std::array<uint16_t, code_points / 256> block_of_{};
  std::vector<Block> blocks_;
};

bool has_class(char32_t c, ClassBit bit) {
  static const CharacterClasses classes;
  return classes.has(c, bit);
}

bool is_ascii_letter(char32_t c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

/// The range of a table, in order, that has `c`; null if none has.
template <class Range>
const Range* range_with(std::span<const Range> ranges, char32_t c) {
  const auto after = std::ranges::upper_bound(ranges, c, {}, &Range::first);
  if (after == ranges.begin() || std::prev(after)->last < c) return nullptr;
  return &*std::prev(after);
}

/// Parts of Korean syllables, which come together.
enum class HangulPart { none, leading, vowel, trailing, open_syllable, syllable };

HangulPart hangul_part(char32_t c) {
  if ((c >= 0x1100 && c <= 0x115F) || (c >= 0xA960 && c <= 0xA97C)) return HangulPart::leading;
  if ((c >= 0x1160 && c <= 0x11A7) || (c >= 0xD7B0 && c <= 0xD7C6)) return HangulPart::vowel;
  if ((c >= 0x11A8 && c <= 0x11FF) || (c >= 0xD7CB && c <= 0xD7FB)) return HangulPart::trailing;
  if (c >= 0xAC00 && c <= 0xD7A3)
    return (c - 0xAC00) % 28 == 0 ? HangulPart::open_syllable : HangulPart::syllable;
  return HangulPart::none;
}

bool hangul_joins(HangulPart left, HangulPart right) {
  using enum HangulPart;
  if (left == leading)
    return right == leading || right == vowel || right == open_syllable || right == syllable;
  if (left == open_syllable || left == vowel) return right == vowel || right == trailing;
  return (left == syllable || left == trailing) && right == trailing;
}

bool is_grapheme_control(char32_t c) {
  if (has_class(c, extending_bit) || has_class(c, preceding_bit)) return false;
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0xAD || c == 0x2028 || c == 0x2029 ||
         has_class(c, bert_removed_bit);
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return has_class(c, white_space_bit);
}

bool is_bert_removed(char32_t c) { return has_class(c, bert_removed_bit); }

bool is_bert_nonspacing(char32_t c) { return c >= 0x300 && has_class(c, bert_nonspacing_bit); }

bool is_bert_punctuation(char32_t c) {
  if (c < 0x80) return c > ' ' && c < 0x7F && !is_ascii_letter(c) && !(c >= '0' && c <= '9');
  return has_class(c, bert_punctuation_bit);
}

bool is_combining_mark(char32_t c) { return c >= 0x300 && has_class(c, combining_bit); }

bool is_number(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return has_class(c, numeric_bit);
}

bool is_word_character(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || c == '_' || is_ascii_letter(c);
  return has_class(c, word_bit);
}

void append_lower(char32_t c, std::u32string& to) {
  constexpr char32_t capital_i_with_dot = 0x130;
  if (c < 0x80) {
    to += c >= 'A' && c <= 'Z' ? c + 32 : c;
  } else if (c == capital_i_with_dot) {
    to += U"i\u0307";
  } else {
    const auto* const range = range_with(lower_table(), c);
    const bool changes = range && (c - range->first) % static_cast<char32_t>(range->step) == 0;
    to += changes ? static_cast<char32_t>(static_cast<int32_t>(c) + range->delta) : c;
  }
}

size_t grapheme_end(std::string_view text, size_t at, size_t most) {
  const size_t begin = at;
  char32_t last = next_code_point(text, at);
  // Flags and sequences of emoji are longer than `most`, which is 5 bytes. Their rules are left out: it does
  // not matter where such a cluster ends.
  while (at < text.size() && at - begin <= most) {
    size_t after = at;
    const char32_t next = next_code_point(text, after);
    const bool joins = last == '\r' && next == '\n'     ? true
                       : is_grapheme_control(last)      ? false
                       : has_class(next, extending_bit) ? true
                       : has_class(last, preceding_bit) ? !is_grapheme_control(next)
                                                        : hangul_joins(hangul_part(last), hangul_part(next));
    if (!joins) break;
    last = next;
    at = after;
  }
  return at;
}

char32_t stand_in_for(char32_t c) {
  if (!has_class(c, stand_in_bit)) return c;
  return range_with(stand_in_table(), c)->instead;
}

char32_t next_code_point(std::string_view text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return text[at++];
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  auto c = static_cast<char32_t>(first & (0x7F >> length));
  const size_t end = std::min(at + length, text.size());
  for (++at; at < end; ++at) c = c << 6 | (byte(at) & 0x3F);
  return c;
}

char32_t previous_code_point(std::string_view text, size_t& end) {
  --end;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  size_t at = end;
  return next_code_point(text, at);
}

void append_utf8(char32_t c, std::string& to) {
  const auto byte = [&](char32_t value) { to += static_cast<char>(value); };
  if (c < 0x80) {
    byte(c);
  } else if (c < 0x800) {
    byte(0xC0 | c >> 6);
    byte(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    byte(0xE0 | c >> 12);
    byte(0x80 | (c >> 6 & 0x3F));
    byte(0x80 | (c & 0x3F));
  } else {
    byte(0xF0 | c >> 18);
    byte(0x80 | (c >> 12 & 0x3F));
    byte(0x80 | (c >> 6 & 0x3F));
    byte(0x80 | (c & 0x3F));
  }
}

}  // namespace zoo

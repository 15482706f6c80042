#pragma once
// Models of SentencePiece, made by hand: its own trainer writes none that are wrong.

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo::testing {

// The wire format of Protocol Buffers.

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
inline std::string number_field(uint64_t number, uint64_t value) {
  return varint(number << 3) + varint(value);
}
inline std::string bytes_field(uint64_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}
inline std::string float_field(uint64_t number, float value) {
  auto out = varint(number << 3 | 5);
  for (auto bits = std::bit_cast<uint32_t>(value); out.size() < varint(number << 3 | 5).size() + 4;
       bits >>= 8)
    out += static_cast<char>(bits);
  return out;
}

/// Type of a piece: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte.
inline std::string piece(std::string_view text, int type = 1, float score = -1) {
  return bytes_field(
      1, bytes_field(1, text) + float_field(2, score) + number_field(3, static_cast<uint64_t>(type)));
}

/// <unk>, <s>, </s> and the letters a, b, c with the blank before them.
inline std::string few_pieces() {
  return piece("<unk>", 2) + piece("<s>", 3) + piece("</s>", 3) + piece("\xE2\x96\x81") + piece("a") +
         piece("b") + piece("c") + piece("ab", 1, -0.5);
}

/// A model whose normalizer_spec has this charsmap.
inline std::string with_charsmap(std::string_view charsmap) {
  return few_pieces() + bytes_field(2, number_field(3, 1)) + bytes_field(3, bytes_field(2, charsmap));
}

/// A precompiled_charsmap of these units and replacements.
inline std::string charsmap(const std::vector<uint32_t>& units, std::string_view replacements) {
  const auto put = [](uint32_t value) {
    std::string out;
    for (int i = 0; i < 4; ++i, value >>= 8) out += static_cast<char>(value);
    return out;
  };
  auto out = put(static_cast<uint32_t>(4 * units.size()));
  for (const uint32_t unit : units) out += put(unit);
  return out + std::string(replacements);
}

/// A unit of the trie: the byte that leads to it, where its own bytes begin, and whether a rule ends here.
inline uint32_t unit(uint32_t label, uint32_t offset, bool ends) {
  return label | (ends ? 0x100U : 0U) | offset << 10;
}
/// The unit of a rule's value: where its replacement begins.
inline uint32_t value_unit(uint32_t value) { return value | 1U << 31; }

/// No byte leads to such a unit.
inline constexpr uint32_t kUnused = 1U << 31;

/// A trie with the rules "a", "aa", …, `n_rules` of them; each replacement begins at `value`. Node k has the
/// base 256·(k + 1), where its value is.
inline std::vector<uint32_t> nested_rules(size_t n_rules, uint32_t value = 0) {
  std::vector<uint32_t> units(256 * (n_rules + 2), kUnused);
  const auto base = [](size_t k) { return static_cast<uint32_t>(256 * (k + 1)); };
  units[0] = unit(0, base(0), false);
  for (size_t k = 0; k < n_rules; ++k) {
    const uint32_t node = base(k) ^ 'a';
    units[node] = unit('a', node ^ base(k + 1), true);
    units[base(k + 1)] = value_unit(value);
  }
  return units;
}

}  // namespace zoo::testing

#pragma once
// Sets of characters.

#include <cstdint>
#include <vector>

#include "tokenizers/unicode/tables.h"

namespace zoo {

/// A set of code points without surrogates: U+0000 … U+D7FF, U+E000 … U+10FFFF.
class CodePoints {
 public:
  CodePoints() = default;
  /// Ranges in any order; they may overlap. Surrogates are left out.
  explicit CodePoints(std::vector<CodeRange> ranges);
  static CodePoints all();
  static CodePoints one(char32_t c) { return CodePoints({{c, c}}); }

  /// Ascending, disjoint, with a gap between neighbours.
  const std::vector<CodeRange>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool contains(char32_t c) const;
  CodePoints united(const CodePoints& other) const;
  CodePoints shared(const CodePoints& other) const;
  CodePoints complement() const;

 private:
  std::vector<CodeRange> ranges_;
};

/// The bytes that may stand at one place.
struct ByteRange {
  uint8_t first, last;
  bool operator==(const ByteRange&) const = default;
  auto operator<=>(const ByteRange&) const = default;
};

/// The set in UTF-8: every text with a byte of each range of one of the lists, in their order. The ranges at
/// the same place of two lists with equal ranges before it are equal or disjoint.
std::vector<std::vector<ByteRange>> utf8_ranges(const CodePoints& characters);

}  // namespace zoo

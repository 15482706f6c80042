#include "generation/constraints/code_points.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

constexpr char32_t kLast = 0x10FFFF;
constexpr char32_t kBeforeSurrogates = 0xD7FF, kAfterSurrogates = 0xE000;

/// Ascending and disjoint, with a gap between neighbours.
std::vector<CodeRange> merged(std::vector<CodeRange> ranges) {
  std::ranges::sort(ranges, {}, &CodeRange::first);
  std::vector<CodeRange> result;
  for (const auto& range : ranges) {
    if (!result.empty() && range.first <= result.back().last + 1) {
      result.back().last = std::max(result.back().last, range.last);
    } else {
      result.push_back(range);
    }
  }
  return result;
}

std::vector<CodeRange> gaps(const std::vector<CodeRange>& ranges) {
  std::vector<CodeRange> result;
  char32_t next = 0;
  for (const auto& range : ranges) {
    if (range.first > next) result.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLast) result.push_back({next, kLast});
  return result;
}

std::string utf8(char32_t c) {
  std::string bytes;
  append_utf8(c, bytes);
  return bytes;
}

/// Appends the bytes of a range whose characters have equally many of them. Splits it until all bytes but the
/// first different one take every value.
void append_bytes(char32_t first, char32_t last, std::vector<std::vector<ByteRange>>& to) {
  const auto from = utf8(first), until = utf8(last);
  const size_t n = from.size();
  for (size_t free = n - 1; free > 0; --free) {  // how many bytes at the end should take every value
    const char32_t size = char32_t{1} << (6 * free);
    if (first / size == last / size) continue;
    if (first % size != 0) {
      append_bytes(first, first / size * size + size - 1, to);
      append_bytes(first / size * size + size, last, to);
      return;
    }
    if (last % size != size - 1) {
      append_bytes(first, last / size * size - 1, to);
      append_bytes(last / size * size, last, to);
      return;
    }
  }
  auto& bytes = to.emplace_back();
  for (size_t i = 0; i < n; ++i)
    bytes.push_back({static_cast<uint8_t>(from[i]), static_cast<uint8_t>(until[i])});
}

}  // namespace

CodePoints::CodePoints(std::vector<CodeRange> ranges) {
  for (const auto& range : merged(std::move(ranges))) {
    if (range.first <= kBeforeSurrogates)
      ranges_.push_back({range.first, std::min(range.last, kBeforeSurrogates)});
    if (range.last >= kAfterSurrogates)
      ranges_.push_back({std::max(range.first, kAfterSurrogates), std::min(range.last, kLast)});
  }
}

CodePoints CodePoints::all() { return CodePoints({{0, kLast}}); }

bool CodePoints::contains(char32_t c) const {
  const auto after = std::ranges::upper_bound(ranges_, c, {}, &CodeRange::first);
  return after != ranges_.begin() && c <= std::prev(after)->last;
}

CodePoints CodePoints::united(const CodePoints& other) const {
  auto both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CodePoints(std::move(both));
}

CodePoints CodePoints::shared(const CodePoints& other) const {
  return complement().united(other.complement()).complement();
}

CodePoints CodePoints::complement() const { return CodePoints(gaps(ranges_)); }

std::vector<std::vector<ByteRange>> utf8_ranges(const CodePoints& characters) {
  constexpr std::array<CodeRange, 4> sizes{{{0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xFFFF}, {0x10000, kLast}}};
  std::vector<std::vector<ByteRange>> result;
  for (const auto& range : characters.ranges()) {
    for (const auto& size : sizes) {
      const auto first = std::max(range.first, size.first), last = std::min(range.last, size.last);
      if (first <= last) append_bytes(first, last, result);
    }
  }
  return result;
}

}  // namespace zoo

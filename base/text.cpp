#include "base/text.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {
namespace {

struct Decoded {
  char32_t code_point;
  size_t length;  // in bytes; 0 if they are not UTF-8
};

/// The code point at the start of `text`, which is not empty.
Decoded decode_one(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  // 0x80–0xBF start no character, 0xC0 and 0xC1 start overlong pairs, 0xF5 and above lie beyond U+10FFFF.
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {0, 0};
  auto code_point = static_cast<char32_t>(first & (0x7F >> length));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    code_point = code_point << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code_point >= 0xD800 && code_point <= 0xDFFF;
  if (code_point < smallest[length] || surrogate || code_point > 0x10FFFF) return {0, 0};
  return {code_point, length};
}

std::string comparable(std::string_view name) {
  std::string result = ascii_lower(name);
  std::ranges::replace(result, '-', '_');
  return result;
}

/// Whether `part` is a word of `whole`, bounded by underscores or by its ends.
bool has_word(std::string_view whole, std::string_view part) {
  if (part.size() < 2) return false;
  for (size_t at = whole.find(part); at != whole.npos; at = whole.find(part, at + 1)) {
    const size_t end = at + part.size();
    if ((at == 0 || whole[at - 1] == '_') && (end == whole.size() || whole[end] == '_')) return true;
  }
  return false;
}

}  // namespace

std::string ascii_lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return result;
}

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = decode_one(text.substr(at)).length;
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

size_t incomplete_utf8(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;  // not the first byte of a character
    const size_t length = byte >= 0xF0 && byte <= 0xF4  ? 4
                          : byte >= 0xE0 && byte < 0xF0 ? 3
                          : byte >= 0xC2 && byte < 0xE0 ? 2
                                                        : 1;
    return length > back ? back : 0;
  }
  return 0;
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view mark = "\xEF\xBB\xBF";
  return text.starts_with(mark) ? text.substr(mark.size()) : text;
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string result;
  result.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto [code_point, length] = decode_one(text.substr(at));
    if (length == 0) throw DataError(fmt::format("not valid UTF-8 at byte {}", at));
    result.push_back(code_point);
    at += length;
  }
  return result;
}

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

size_t byte_of_code_point(std::string_view text, size_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) {
    do ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  }
  return at;
}

std::string encode_utf8(std::u32string_view code_points) {
  std::string result;
  result.reserve(code_points.size());
  const auto put = [&](char32_t byte) { result.push_back(static_cast<char>(byte)); };
  for (const char32_t c : code_points) {
    if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) {
      throw DataError(fmt::format("U+{:04X} is not a character and cannot be encoded as UTF-8",
                                  static_cast<uint32_t>(c)));
    }
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 | c >> 6);
      put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      put(0xE0 | c >> 12);
      put(0x80 | (c >> 6 & 0x3F));
      put(0x80 | (c & 0x3F));
    } else {
      put(0xF0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3F));
      put(0x80 | (c >> 6 & 0x3F));
      put(0x80 | (c & 0x3F));
    }
  }
  return result;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = last[j - 1] + (a[i - 1] != b[j - 1]);
      row[j] = std::min({substituted, last[j] + 1, row[j - 1] + 1});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates) {
  // A longer name is not a typing error, and the distance costs the product of the lengths.
  constexpr size_t longest_name = 100;
  if (name.empty() || name.size() > longest_name) return std::nullopt;
  const std::string wanted = comparable(name);
  const std::string* best = nullptr;
  size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::string known = comparable(candidate);
    const size_t longest = std::max(wanted.size(), known.size());
    size_t distance = edit_distance(wanted, known);
    if (distance > 3 || distance * 2 > longest) {
      if (!has_word(known, wanted) && !has_word(wanted, known)) continue;
      distance += 3;  // ranks after every likely typing error
    }
    if (!best || distance < best_distance) {
      best = &candidate;
      best_distance = distance;
    }
  }
  return best ? std::optional(*best) : std::nullopt;
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0;
  std::optional<size_t> star;  // the last `*`, which stands for as little as possible
  size_t resume = 0;           // what follows this `*` begins here
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star) {
      p = *star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

std::string excerpt(std::string_view text, size_t max_bytes) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    if (result.size() >= max_bytes) return result + "…";
    const auto [code_point, length] = decode_one(text.substr(at));
    const auto byte = static_cast<unsigned char>(text[at]);
    if (text[at] == '\n') {
      result += "\\n";
    } else if (text[at] == '\t') {
      result += "\\t";
    } else if (length == 0 || byte < 0x20 || byte == 0x7F) {
      result += fmt::format("\\x{:02x}", byte);
    } else if ((code_point >= 0x80 && code_point < 0xA0) || code_point == 0x2028 || code_point == 0x2029) {
      result += fmt::format("\\u{:04x}", static_cast<uint32_t>(code_point));  // line breaks in some terminals
    } else {
      result += text.substr(at, length);
    }
    at += std::max<size_t>(length, 1);
  }
  return result;
}

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\t"), text.size());
    result += excerpt(text.substr(0, end), text.npos);
    if (end == text.size()) break;
    result += text[end];
    text.remove_prefix(end + 1);
  }
  return result;
}

}  // namespace zoo

// Normal forms of Unicode (https://www.unicode.org/reports/tr15/). The order in which characters are
// composed, and what counts as the same character before and after, are those of the crate
// unicode-normalization-alignments.

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <unordered_map>

#include "tokenizers/unicode/characters.h"
#include "tokenizers/unicode/tables.h"

namespace zoo {
namespace {

/// A character of which the normal forms of tokenizers know nothing.
bool is_later(char32_t c) {
  if (c < 0x7FD) return false;
  const auto ranges = later_than_normal_forms_table();
  const auto after = std::ranges::upper_bound(ranges, c, {}, &CodeRange::first);
  return after != ranges.begin() && std::prev(after)->last >= c;
}

int combining_class(char32_t c) {
  if (c < 0x300 || is_later(c)) return 0;
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
}

/// The full decomposition of `c`, in at most 18 characters.
size_t decompose(char32_t c, bool compatible, std::array<utf8proc_int32_t, 32>& to) {
  to[0] = static_cast<utf8proc_int32_t>(c);
  if (c < 0xA0 || is_later(c)) return 1;
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
  int last_class = 0;
  const auto n = utf8proc_decompose_char(to[0], to.data(), to.size(), static_cast<utf8proc_option_t>(options),
                                         &last_class);
  if (n > 0 && n <= std::ssize(to)) return static_cast<size_t>(n);
  to[0] = static_cast<utf8proc_int32_t>(c);
  return 1;
}

/// The characters that two make, by both; without Korean syllables, which are computed.
std::unordered_map<uint64_t, char32_t> compositions() {
  std::unordered_map<uint64_t, char32_t> pairs;
  const auto add = [&](char32_t first, char32_t last) {
    for (char32_t c = first; c <= last; ++c) {
      std::array<utf8proc_int32_t, 4> buffer{static_cast<utf8proc_int32_t>(c)};
      // One step: the composed form of the decomposed character is itself, if it may be composed at all.
      std::array<utf8proc_int32_t, 32> parts{};
      const size_t n = decompose(c, false, parts);
      if (n < 2) continue;
      std::ranges::copy_n(parts.begin(), std::min<ptrdiff_t>(static_cast<ptrdiff_t>(n), 4), buffer.begin());
      if (n > 4) continue;
      const auto size =
          utf8proc_normalize_utf32(buffer.data(), static_cast<utf8proc_ssize_t>(n),
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      if (size != 1 || buffer[0] != static_cast<utf8proc_int32_t>(c)) continue;
      // All but the last character are composed already.
      std::ranges::copy_n(parts.begin(), static_cast<ptrdiff_t>(n), buffer.begin());
      const auto left =
          utf8proc_normalize_utf32(buffer.data(), static_cast<utf8proc_ssize_t>(n - 1),
                                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
      if (left == 1)
        pairs[uint64_t{static_cast<uint32_t>(buffer[0])} << 32 | static_cast<uint32_t>(parts[n - 1])] = c;
    }
  };
  add(0xC0, 0x3100);
  add(0x11000, 0x12000);
  return pairs;
}

constexpr char32_t syllables = 0xAC00, leads = 0x1100, vowels = 0x1161, tails = 0x11A7;
constexpr char32_t n_leads = 19, n_vowels = 21, n_tails = 28;

/// The character that `a` and `b` make; 0 if they make none.
char32_t composed(char32_t a, char32_t b) {
  if (b < 0x300) return 0;
  if (a >= leads && a < leads + n_leads && b >= vowels && b < vowels + n_vowels)
    return syllables + ((a - leads) * n_vowels + (b - vowels)) * n_tails;
  if (a >= syllables && a < syllables + n_leads * n_vowels * n_tails && (a - syllables) % n_tails == 0 &&
      b > tails && b < tails + n_tails)
    return a + (b - tails);
  static const auto pairs = compositions();
  const auto found = pairs.find(uint64_t{a} << 32 | b);
  return found == pairs.end() ? 0 : found->second;
}

struct Decomposed {
  char32_t c;
  int32_t change;
  int combining;
};

/// Puts what follows the last starter in the order of its classes.
void sort_pending(std::vector<Decomposed>& text, size_t& sorted) {
  std::stable_sort(text.begin() + static_cast<ptrdiff_t>(sorted), text.end(),
                   [](const Decomposed& a, const Decomposed& b) { return a.combining < b.combining; });
  sorted = text.size();
}

std::vector<Decomposed> decomposed(std::string_view text, bool compatible) {
  std::vector<Decomposed> result;
  std::array<utf8proc_int32_t, 32> parts{};
  size_t sorted = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t n = decompose(next_code_point(text, at), compatible, parts);
    for (size_t i = 0; i < n; ++i) {
      const auto c = static_cast<char32_t>(parts[i]);
      const int kind = combining_class(c);
      if (kind == 0) sort_pending(result, sorted);
      result.push_back({c, i > 0, kind});
    }
  }
  sort_pending(result, sorted);
  return result;
}

void append_composed(const std::vector<Decomposed>& text, std::vector<NormalCharacter>& to) {
  size_t starter = to.size();  // the place of the last starter
  bool has_starter = false;
  int last_class = -1;  // of the marks kept after the starter; -1: none
  for (const auto& [c, change, kind] : text) {
    if (has_starter && (last_class < 0 || last_class < kind)) {
      if (const char32_t whole = composed(to[starter].c, c); whole != 0) {
        to[starter] = {whole, to[starter].change + change - 1};
        continue;
      }
    }
    if (kind == 0) {
      starter = to.size();
      has_starter = true;
      last_class = -1;
    } else if (has_starter) {
      last_class = kind;
    }
    to.push_back({c, change});
  }
}

/// A part of a text that does not begin with what belongs to the text before.
void append_part(std::string_view text, NormalForm form, std::vector<NormalCharacter>& to) {
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const auto parts = decomposed(text, compatible);
  if (form == NormalForm::nfc || form == NormalForm::nfkc) return append_composed(parts, to);
  for (const auto& part : parts) to.push_back({part.c, part.change});
}

}  // namespace

void append_normal_form(std::string_view text, NormalForm form, std::vector<NormalCharacter>& to) {
  const auto is_ascii = [&](size_t i) { return static_cast<unsigned char>(text[i]) < 0x80; };
  for (size_t at = 0; at < text.size();) {
    // An ASCII character before another one stays, and nothing before it changes with it.
    if (is_ascii(at) && (at + 1 == text.size() || is_ascii(at + 1))) {
      to.push_back({static_cast<char32_t>(text[at++]), 0});
      continue;
    }
    size_t end = at + 1;
    while (end < text.size() && !is_ascii(end)) ++end;
    append_part(text.substr(at, end - at), form, to);
    at = end;
  }
}

}  // namespace zoo

#include "tokenizers/unicode/code_points.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>

#include "tokenizers/unicode/characters.h"

namespace zoo::templates {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

struct LongUpper {
  char32_t letter;
  const char *upper, *title;
};
constexpr LongUpper long_uppers[] = {{0xDF, "SS", "Ss"},     {0x149, "ʼN", "ʼN"},    {0x1F0, "J̌", "J̌"},
                                     {0xFB00, "FF", "Ff"},   {0xFB01, "FI", "Fi"},   {0xFB02, "FL", "Fl"},
                                     {0xFB03, "FFI", "Ffi"}, {0xFB04, "FFL", "Ffl"}, {0xFB05, "ST", "St"},
                                     {0xFB06, "ST", "St"}};

const LongUpper* long_upper(char32_t c) {
  const auto* const found = std::ranges::find(long_uppers, c, &LongUpper::letter);
  return found == std::end(long_uppers) ? nullptr : found;
}

void append_upper(char32_t c, std::string& to) {
  if (const auto* known = long_upper(c)) {
    to += known->upper;
  } else {
    append_utf8(static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))), to);
  }
}

void append_title(char32_t c, std::string& to) {
  if (const auto* known = long_upper(c)) {
    to += known->title;
  } else {
    append_utf8(static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))), to);
  }
}

bool is_cased(char32_t c) { return is_upper(c) || is_lower(c) || category(c) == UTF8PROC_CATEGORY_LT; }
bool is_case_ignorable(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_MN || kind == UTF8PROC_CATEGORY_ME || kind == UTF8PROC_CATEGORY_CF ||
         kind == UTF8PROC_CATEGORY_LM || kind == UTF8PROC_CATEGORY_SK || c == '\'' || c == '.' || c == ':' ||
         c == 0xB7 || c == 0x2019;
}

/// Whether the sigma at `at` ends a word.
bool is_final_sigma(std::string_view text, size_t at, size_t after) {
  bool follows = false;
  for (size_t before = at; before > 0;) {
    const char32_t c = previous_code_point(text, before);
    if (is_case_ignorable(c)) continue;
    follows = is_cased(c);
    break;
  }
  if (!follows) return false;
  while (after < text.size()) {
    const char32_t c = next_code_point(text, after);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

/// Appends the lower case of the character at `at`, which moves behind it.
void lower_next(std::string_view text, size_t& at, std::string& to) {
  const size_t begin = at;
  const char32_t c = next_code_point(text, at);
  if (c == 0x130) {
    to += "i̇";
  } else if (c == 0x3A3) {
    to += is_final_sigma(text, begin, at) ? "ς" : "σ";
  } else {
    append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), to);
  }
}

/// The characters that are stripped from a text.
class Stripped {
 public:
  explicit Stripped(const std::string* characters) : are_blanks_(!characters) {
    if (!characters) return;
    for (size_t at = 0; at < characters->size();) characters_.insert(next_code_point(*characters, at));
  }
  bool contain(char32_t c) const { return are_blanks_ ? is_space(c) : characters_.contains(c); }

 private:
  bool are_blanks_;
  std::unordered_set<char32_t> characters_;
};

bool ends_line(char32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

}  // namespace

size_t next_place(std::string_view text, size_t at) {
  next_code_point(text, at);
  return at;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_printable(char32_t c) {
  // The categories from "separator, space" on are separators, controls, surrogates and private use.
  const auto kind = category(c);
  return c == ' ' || (kind != UTF8PROC_CATEGORY_CN && kind < UTF8PROC_CATEGORY_ZS);
}

bool is_upper(char32_t c) { return utf8proc_isupper(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_lower(char32_t c) { return utf8proc_islower(static_cast<utf8proc_int32_t>(c)) != 0; }
bool is_letter(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}
bool is_decimal(char32_t c) { return category(c) == UTF8PROC_CATEGORY_ND; }

std::string upper(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) append_upper(next_code_point(text, at), result);
  return result;
}

std::string lower(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) lower_next(text, at, result);
  return result;
}

std::string title(std::string_view text) {
  std::string result;
  bool within_word = false;
  for (size_t at = 0; at < text.size();) {
    size_t after = at;
    const char32_t c = next_code_point(text, after);
    if (within_word) {
      lower_next(text, at, result);
    } else {
      append_title(c, result);
      at = after;
    }
    within_word = is_cased(c);
  }
  return result;
}

std::string capitalized(std::string_view text) {
  std::string result;
  size_t at = 0;
  if (!text.empty()) append_title(next_code_point(text, at), result);
  while (at < text.size()) lower_next(text, at, result);
  return result;
}

std::string_view strip_left(std::string_view text, const std::string* characters) {
  const Stripped stripped(characters);
  size_t at = 0;
  while (at < text.size()) {
    size_t after = at;
    if (!stripped.contain(next_code_point(text, after))) break;
    at = after;
  }
  return text.substr(at);
}

std::string_view strip_right(std::string_view text, const std::string* characters) {
  const Stripped stripped(characters);
  size_t end = text.size();
  while (end > 0) {
    size_t before = end;
    if (!stripped.contain(previous_code_point(text, before))) break;
    end = before;
  }
  return text.substr(0, end);
}

std::vector<std::string_view> split_lines(std::string_view text, LineEnds ends) {
  std::vector<std::string_view> lines;
  for (size_t at = 0, begin = 0; at < text.size();) {
    const size_t end = at;
    const char32_t c = next_code_point(text, at);
    const bool is_end = ends_line(c);
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    if (is_end) {
      lines.push_back(text.substr(begin, (ends == LineEnds::keep ? at : end) - begin));
      begin = at;
    } else if (at == text.size()) {
      lines.push_back(text.substr(begin));
    }
  }
  return lines;
}

}  // namespace zoo::templates

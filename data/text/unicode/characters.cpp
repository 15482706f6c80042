#include "data/text/unicode/characters.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>

#include "base/error.h"

namespace zoo {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

utf8proc_option_t options_of(NormalForm form) {
  int options = 0;
  switch (form) {
    case NormalForm::nfc:
      options = UTF8PROC_COMPOSE;
      break;
    case NormalForm::nfd:
      options = UTF8PROC_DECOMPOSE;
      break;
    case NormalForm::nfkc:
      options = UTF8PROC_COMPOSE | UTF8PROC_COMPAT;
      break;
    case NormalForm::nfkd:
      options = UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT;
      break;
  }
  return static_cast<utf8proc_option_t>(options | UTF8PROC_STABLE);
}

}  // namespace

std::string in_normal_form(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  if (text.size() > std::numeric_limits<int32_t>::max()) throw DataError("text of more than 2 GiB");
  struct Free {
    void operator()(utf8proc_uint8_t* memory) const { std::free(memory); }
  };
  utf8proc_uint8_t* changed = nullptr;
  const auto size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &changed, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, Free> owner(changed);
  if (size < 0) throw DataError("text that cannot be normalised: it is not UTF-8");
  return {reinterpret_cast<const char*>(changed), static_cast<size_t>(size)};
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_other(char32_t c) {
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_CC || kind == UTF8PROC_CATEGORY_CF || kind == UTF8PROC_CATEGORY_CS ||
         kind == UTF8PROC_CATEGORY_CO;
}

bool is_nonspacing_mark(char32_t c) { return c >= 0x300 && category(c) == UTF8PROC_CATEGORY_MN; }

bool is_mark(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_number(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const auto kind = category(c);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_word_character(char32_t c) {
  if (c < 0x80) return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= 'a' && c <= 'z');
  const auto kind = category(c);
  const bool other_alphabetic = c >= 0x24B6 && c <= 0x24E9;  // circled letters: symbols, but alphabetic
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_ME) || kind == UTF8PROC_CATEGORY_ND ||
         kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_PC || c == 0x200C || c == 0x200D ||
         other_alphabetic || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

void append_lower(char32_t c, std::u32string& to) {
  constexpr char32_t capital_i_with_dot = 0x130;
  if (c < 0x80) {
    to += c >= 'A' && c <= 'Z' ? c + 32 : c;
  } else if (c == capital_i_with_dot) {
    to += U"i\u0307";
  } else {
    to += static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
  }
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

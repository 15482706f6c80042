#include "data/text/unicode/lowercase.h"

#include <clocale>
#include <cwctype>
#include <memory>
#include <type_traits>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

char32_t ascii_lower(char32_t c) { return c >= U'A' && c <= U'Z' ? c + 32 : c; }

struct FreeLocale {
  void operator()(locale_t locale) const { ::freelocale(locale); }
};
using Locale = std::unique_ptr<std::remove_pointer_t<locale_t>, FreeLocale>;

}  // namespace

std::string lowercase(std::string_view text) {
  bool ascii = true;
  for (const char c : text) ascii &= static_cast<unsigned char>(c) < 0x80;
  if (ascii || find_invalid_utf8(text)) {
    std::string result(text);
    for (char& c : result) c = static_cast<char>(ascii_lower(static_cast<unsigned char>(c)));
    return result;
  }
  // C.UTF-8 is built into glibc, so its tables do not depend on the languages that a machine has installed.
  static const Locale locale(::newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{}));
  if (!locale) throw SystemError("lower case needs the locale C.UTF-8, which this machine lacks");
  std::u32string code_points = decode_utf8(text);
  for (char32_t& c : code_points)
    c = static_cast<char32_t>(::towlower_l(static_cast<wint_t>(c), locale.get()));
  return encode_utf8(code_points);
}

}  // namespace zoo

#include "tokenizers/unicode/lowercase.h"

#include "base/text.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {

std::string lowercase(std::string_view text) {
  bool is_ascii = true;
  for (const char c : text) is_ascii &= static_cast<unsigned char>(c) < 0x80;
  if (is_ascii || find_invalid_utf8(text)) return ascii_lower(text);
  std::string result;
  result.reserve(text.size());
  std::u32string lower;
  for (size_t at = 0; at < text.size();) {
    lower.clear();
    append_lower(next_code_point(text, at), lower);
    append_utf8(lower.front(), result);
  }
  return result;
}

}  // namespace zoo

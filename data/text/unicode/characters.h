#pragma once
// Properties of characters and normal forms of texts, by the library utf8proc (Unicode 15.0 in Debian 12).
// Tokenizers of the Hub know other versions: Rust's own functions Unicode 16, the normal forms and the rules
// of BERT older ones. Texts with code points that are newer than the older version can get other tokens.

#include <string>
#include <string_view>

namespace zoo {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// `text`, which is UTF-8, in this normal form. Throws DataError if it is not UTF-8.
std::string in_normal_form(std::string_view text, NormalForm form);

/// The property White_Space.
bool is_white_space(char32_t c);
/// A control character (Cc), a format character (Cf), a surrogate or a character for private use.
bool is_other(char32_t c);
/// A nonspacing mark (Mn), such as an accent.
bool is_nonspacing_mark(char32_t c);
/// A mark of any kind (Mn, Mc, Me).
bool is_mark(char32_t c);
/// A number (Nd, Nl, No).
bool is_number(char32_t c);
/// Punctuation (P…).
bool is_punctuation(char32_t c);
/// A character of words: a letter, a mark, a digit, a connector or a joiner, as `\w` of Rust's regex.
bool is_word_character(char32_t c);

/// Appends `c` in lower case, which may be several characters.
void append_lower(char32_t c, std::u32string& to);

/// The code point at `at` of a text that is UTF-8; `at` moves behind it.
char32_t next_code_point(std::string_view text, size_t& at);
/// The code point that ends at `end` of a text that is UTF-8; `end` moves before it.
char32_t previous_code_point(std::string_view text, size_t& end);
/// Appends the UTF-8 of a code point.
void append_utf8(char32_t c, std::string& to);

}  // namespace zoo

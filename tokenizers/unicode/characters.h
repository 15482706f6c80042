#pragma once
// Properties of characters and normal forms of texts, as tokenizers has them (tokenizers/unicode/tables.h).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// A character of a normal form, and what becomes of the characters of the text: with 1 it is new; with 0 it
/// takes the place of the next character; with -n it does so, and the n characters after that one are left
/// out.
struct NormalCharacter {
  char32_t c;
  int32_t change;
};
/// Appends the normal form of `text`, which is UTF-8, by the library utf8proc.
void append_normal_form(std::string_view text, NormalForm form, std::vector<NormalCharacter>& to);

/// The property White_Space.
bool is_white_space(char32_t c);
/// Removed by BERT: control characters, formats, private use.
bool is_bert_removed(char32_t c);
/// A nonspacing mark to BERT, such as an accent.
bool is_bert_nonspacing(char32_t c);
/// ASCII punctuation and symbols, and punctuation of other scripts.
bool is_bert_punctuation(char32_t c);
/// A mark of any kind.
bool is_combining_mark(char32_t c);
/// A number (Nd, Nl, No).
bool is_number(char32_t c);
/// A character of words: a letter, a mark, a digit, a connector or a joiner, as `\w` of Rust's regex.
bool is_word_character(char32_t c);

/// Appends `c` in lower case, which may be several characters.
void append_lower(char32_t c, std::u32string& to);

/// The end of the grapheme that begins at `at`, if it has at most `most` bytes; else something larger than
/// at + most. `text` is UTF-8.
size_t grapheme_end(std::string_view text, size_t at, size_t most);

/// The character that patterns read for `c`: see StandIn in tokenizers/unicode/tables.h.
char32_t stand_in_for(char32_t c);

/// The code point at `at` of a text that is UTF-8; `at` moves behind it.
char32_t next_code_point(std::string_view text, size_t& at);
/// The code point that ends at `end` of a text that is UTF-8; `end` moves before it.
char32_t previous_code_point(std::string_view text, size_t& end);
/// Appends the UTF-8 of a code point.
void append_utf8(char32_t c, std::string& to);

}  // namespace zoo

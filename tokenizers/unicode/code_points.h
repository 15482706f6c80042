#pragma once
// Texts of templates by code points, as Python counts them. All texts are UTF-8.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace zoo::templates {

/// The byte after the character that begins at `at`.
size_t next_place(std::string_view text, size_t at);

/// str.isspace() of one character.
bool is_space(char32_t c);
/// str.isprintable() of one character.
bool is_printable(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_letter(char32_t c);
bool is_decimal(char32_t c);

/// str.upper(), lower(), title(), capitalize(). A few letters whose other case is more than one character
/// are known: ß, ligatures, İ.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string title(std::string_view text);
std::string capitalized(std::string_view text);

/// `text` without the characters of `characters` at its left or right end; null removes blanks of all kinds.
std::string_view strip_left(std::string_view text, const std::string* characters);
std::string_view strip_right(std::string_view text, const std::string* characters);

/// str.splitlines(). With `keep` the lines have their ends.
enum class LineEnds { drop, keep };
std::vector<std::string_view> split_lines(std::string_view text, LineEnds ends);

}  // namespace zoo::templates

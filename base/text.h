#pragma once
// UTF-8, similar names, and text for messages.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace zoo {

/// Byte offset of the first sequence that is not UTF-8 (overlong, surrogate, beyond U+10FFFF, cut off), if
/// any.
std::optional<size_t> find_invalid_utf8(std::string_view text);

/// Number of bytes at the end of `text` that begin a character and do not complete it.
size_t incomplete_utf8(std::string_view text);

/// `text` without the UTF-8 byte order mark at its start, if it has one.
std::string_view without_byte_order_mark(std::string_view text);

/// The code points of `text`. Throws DataError with the byte offset when it is not UTF-8.
std::u32string decode_utf8(std::string_view text);

/// How many code points `text`, which is UTF-8, has.
size_t count_code_points(std::string_view text);
/// The byte at which code point `index` of `text` begins; text.size() if there are not so many.
size_t byte_of_code_point(std::string_view text, size_t index);

/// The UTF-8 of `code_points`. Throws DataError for a surrogate or a value beyond U+10FFFF.
std::string encode_utf8(std::u32string_view code_points);

/// `text` with A to Z in lower case. Every other byte stays as it is, whatever the locale.
std::string ascii_lower(std::string_view text);

/// Number of insertions, deletions, substitutions and swaps of neighbours that lead from `a` to `b`, in bytes
/// (Damerau-Levenshtein, optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that `name` probably means, if any is near enough. Upper and lower case count as equal,
/// and so do '-' and '_'. Candidates with the name as a word count as near (warmup, warmup_steps).
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

/// Whether `pattern` stands for the whole of `text`: each `*` stands for any bytes, also for none, and every
/// other byte for itself.
bool matches_pattern(std::string_view pattern, std::string_view text);

/// `text` for a message of one line: control characters and broken UTF-8 are escaped, and the text is cut
/// after about `max_bytes`.
std::string excerpt(std::string_view text, size_t max_bytes = 80);

/// `text` for a terminal: escaped as in excerpt(), except for line breaks and tabs, and not cut. Escape
/// sequences of a terminal in it have no effect.
std::string printable(std::string_view text);

}  // namespace zoo

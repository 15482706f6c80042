#pragma once
// UTF-8 and names in messages.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace zoo {

/// Byte offset of the first sequence that is not UTF-8 (overlong, surrogate, beyond U+10FFFF, cut off), if
/// any.
std::optional<size_t> find_invalid_utf8(std::string_view text);

/// `text` without a UTF-8 byte order mark at its start, which says nothing about the text.
std::string_view without_byte_order_mark(std::string_view text);

/// The code points of `text`. Throws DataError with the byte offset when it is not UTF-8.
std::u32string decode_utf8(std::string_view text);

/// The UTF-8 of `code_points`. Throws DataError for one that has none (surrogates, beyond U+10FFFF).
std::string encode_utf8(std::u32string_view code_points);

/// Number of insertions, deletions, substitutions and swaps of neighbours that lead from `a` to `b`, in bytes
/// (Damerau-Levenshtein, optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate that somebody who wrote `name` probably meant, if any is near enough. Upper and lower case,
/// '-' and
/// '_' are taken as equal. Candidates that contain the name as a word (warmup, warmup_steps) count as near.
std::optional<std::string> nearest(std::string_view name, std::span<const std::string> candidates);

/// `text` for a message of one line: control characters and broken UTF-8 escaped, cut after about
/// `max_bytes`.
std::string excerpt(std::string_view text, size_t max_bytes = 80);

}  // namespace zoo

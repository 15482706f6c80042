#pragma once
// Bytes as characters that can be seen (GPT-2, https://github.com/openai/gpt-2/blob/master/src/encoder.py):
// printable bytes stand for themselves, the others are U+0100 … in their order. A blank is "Ġ".

#include <string>
#include <string_view>

namespace zoo {

/// Appends each byte as its character; or returns them.
void append_as_characters(std::string_view bytes, std::string& to);
std::string as_characters(std::string_view bytes);
/// Appends the bytes that the characters of `token` stand for; `token` itself if one stands for none.
void append_as_bytes(std::string_view token, std::string& to);
/// `bytes` with U+FFFD for each part that is not UTF-8, as Rust's from_utf8_lossy() has it.
std::string with_replacement_characters(std::string_view bytes);

}  // namespace zoo

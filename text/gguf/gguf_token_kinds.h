#pragma once
// The kinds of tokens in tokenizer.ggml.token_type, and the mark in their texts.

#include <cstdint>

namespace zoo::gguf_token {

inline constexpr int32_t normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6;
/// ▁, which begins a word, or stands for a blank.
inline constexpr const char* word_mark = "\xE2\x96\x81";

}  // namespace zoo::gguf_token

#pragma once
// The kinds of tokens in tokenizer.ggml.token_type.

#include <cstdint>

namespace zoo::gguf_token {

inline constexpr int32_t normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6;

}  // namespace zoo::gguf_token

#pragma once
// What llama.cpp cannot do with a tokenizer ends an export.

#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {

/// Throws ConfigError "llama.cpp cannot express the tokenizer: REASON".
template <class... Args>
[[noreturn]] void refuse_tokenizer(fmt::format_string<Args...> format, Args&&... args) {
  throw ConfigError("llama.cpp cannot express the tokenizer: " +
                    fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace zoo

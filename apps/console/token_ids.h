#pragma once
// Token ids on the command line.

#include <cstdint>
#include <string_view>

namespace zoo {

/// Parses one token id. Throws UsageError if `word` is not a number; its message begins with `where`.
int64_t parse_token_id(std::string_view word, std::string_view where = "");

}  // namespace zoo

#pragma once
// Token ids on the command line.

#include <cstdint>
#include <string_view>

namespace zoo {

/// The id that `word` writes. Throws UsageError, which begins with `where`.
int64_t parse_token_id(std::string_view word, std::string_view where = "");

}  // namespace zoo

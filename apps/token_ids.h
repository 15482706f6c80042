#pragma once
// Token ids on the command line.

#include <cstdint>
#include <string_view>

namespace zoo {

/// The id that `word` writes. Throws UsageError.
int64_t parse_token_id(std::string_view word);

}  // namespace zoo

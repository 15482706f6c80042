#pragma once
// Lists and token ids on the command line.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// The parts of a text between its commas, without the blanks around them; one part if there is none.
std::vector<std::string> parts_at_commas(std::string_view text);

/// Parses one token id. Throws UsageError if `word` is not a number; its message begins with `where`.
int64_t parse_token_id(std::string_view word, std::string_view where = "");

}  // namespace zoo

#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// All of standard input. Throws DataError if there are only blanks; `advice` says what to do then.
std::string standard_input(std::string_view advice);

}  // namespace zoo

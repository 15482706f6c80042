#pragma once

#include <string>
#include <string_view>

namespace zoo {

/// All of standard input. Throws DataError if there are only blanks, where `advice` says what to do, or more
/// than kMostInputBytes (data/text_files.h).
std::string standard_input(std::string_view advice);

}  // namespace zoo

#pragma once

#include <cstddef>
#include <string_view>

namespace zoo {

/// The columns that UTF-8 text takes on a terminal, each character counted as one.
size_t width_of(std::string_view text);

}  // namespace zoo

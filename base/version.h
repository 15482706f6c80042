#pragma once

#include <string_view>

namespace zoo {

/// The version of this library, such as "0.1.0". CMakeLists.txt has it.
std::string_view version();

}  // namespace zoo

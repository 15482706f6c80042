#pragma once

#include <string_view>

namespace zoo {

/// The version of this library, such as "0.1.0". CMakeLists.txt has it.
std::string_view version();

/// The compiler that made this program, such as "GNU 12.2.0".
std::string_view compiler();

/// The configuration of CMake that this program was built with, such as "Release"; it may be empty.
std::string_view build_type();

}  // namespace zoo

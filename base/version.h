#pragma once

#include <string_view>

namespace zoo {

/// The version of this library, such as "0.1.0": that of the project in CMakeLists.txt.
std::string_view version();

}  // namespace zoo

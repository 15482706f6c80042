#pragma once

#include <string_view>

namespace zoo {

namespace embedded {  // cmake/ZooEmbed.cmake
extern const char commit[];
}  // namespace embedded

/// The commit of the sources that this program was built from, such as "1a2b3c4d5e6f", with "-dirty" where
/// files have been changed since; empty outside a repository.
inline std::string_view source_commit() { return embedded::commit; }

}  // namespace zoo

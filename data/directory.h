#pragma once

#include <filesystem>
#include <vector>

namespace zoo {

/// The names of what is in a directory, sorted. Throws DataError if it cannot be read.
std::vector<std::filesystem::path> names_in(const std::filesystem::path& directory);

}  // namespace zoo

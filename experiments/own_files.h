#pragma once
// Which files are data of one's own, and not configurations.

#include <filesystem>
#include <vector>

namespace zoo {

/// Whether `path` is data and not a configuration: a regular file whose name does not end in .yaml, .yml or
/// .json, and in which some line begins with something else than a key of a configuration; or a directory
/// that is no run. Throws DataError for JSON that is data, with what to do about it.
bool is_own_text(const std::filesystem::path& path);

/// Whether `files` are texts; false for one configuration. Throws UsageError if they are neither.
bool are_own_texts(const std::vector<std::filesystem::path>& files);

/// The .txt files of a folder that has no pictures, in place of the folder; else `files`. Throws DataError
/// for a folder of recordings.
std::vector<std::filesystem::path> with_texts_of_folder(const std::vector<std::filesystem::path>& files);

}  // namespace zoo

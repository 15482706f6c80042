#pragma once
// What is in a directory.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zoo {

/// The names of what is in a directory, sorted. Throws DataError if it cannot be read.
std::vector<std::filesystem::path> names_in(const std::filesystem::path& directory);

/// The files of one kind that a directory holds. Names that begin with a dot are left out, and so are links
/// to directories.
struct FileListing {
  std::vector<std::filesystem::path> files;  // of that kind, with the directory
  /// How many others there are: by extension, "no extension", or "no file" for pipes and devices.
  std::map<std::string, int64_t> skipped = {};

  /// "3 other files left out: 2 .txt, 1 .mov"; nothing if there are none.
  std::optional<std::string> skipped_text() const;
};

/// The files of a directory and of the directories in it whose names are of a kind, in the order of their
/// paths. Throws DataError if a directory cannot be read.
FileListing list_files(const std::filesystem::path& directory,
                       const std::function<bool(const std::filesystem::path& name)>& is_of_kind);

}  // namespace zoo

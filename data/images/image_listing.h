#pragma once
// The images in a directory.

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace zoo {

/// What a directory holds. Names that begin with a dot are left out, and so are links to directories.
struct ImageListing {
  std::vector<std::filesystem::path> files;  // PNG, JPEG and WebP by their names, with the directory
  /// How many others there are: by extension, "no extension", or "no file" for pipes and devices.
  std::map<std::string, int64_t> skipped = {};

  /// "3 other files left out: 2 .txt, 1 .mov"; nothing if there are none.
  std::optional<std::string> skipped_text() const;
};

/// The images of a directory and of the directories in it, in the order of their paths. Throws DataError if a
/// directory cannot be read.
ImageListing list_images(const std::filesystem::path& directory);

}  // namespace zoo

#pragma once
// Pictures in requests, for functions that read files: no path of a request reaches the disk.

#include <string>
#include <string_view>

#include "io/open_file.h"

namespace zoo {

/// A file that is in memory alone, as long as this object lives.
class MemoryFile {
 public:
  /// Throws SystemError if there is no memory.
  explicit MemoryFile(std::string_view content);
  /// A path to it, for this process.
  const std::string& path() const { return path_; }

 private:
  Descriptor file_;
  std::string path_;
};

/// The bytes of a picture in a request: a URL "data:image/png;base64,…", or base64 alone. Throws ApiError.
std::string picture_bytes(std::string_view text);

}  // namespace zoo

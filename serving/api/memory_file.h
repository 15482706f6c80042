#pragma once
// Files in requests, for functions that read files: no path of a request reaches the disk.

#include <string>
#include <string_view>
#include <vector>

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

/// A kind of files that requests have as base64.
struct FileKind {
  const char* name;
  const char* media_type;  // of those that are most used
  const char* key;         // of requests
};
inline constexpr FileKind kPictures{.name = "picture", .media_type = "image/png", .key = "images"};
inline constexpr FileKind kPicture{.name = "picture", .media_type = "image/png", .key = "image"};
inline constexpr FileKind kRecording{.name = "recording", .media_type = "audio/wav", .key = "recordings"};

/// The bytes of a file in a request: a URL "data:image/png;base64,…", or base64 alone. Throws ApiError.
std::string bytes_of_file(std::string_view text, const FileKind& kind);

/// use(files), where the files have these contents.
template <class Use>
auto with_files(const std::vector<std::string>& contents, const Use& use) {
  std::vector<MemoryFile> files;
  std::vector<std::string> paths;
  for (const auto& content : contents) {
    files.emplace_back(content);
    paths.push_back(files.back().path());
  }
  return use(paths);
}

}  // namespace zoo

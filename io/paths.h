#pragma once
// Places of files and directories.

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace zoo {

/// The place that `path` names, without links and without a slash at its end; `path` where that cannot be
/// told.
inline std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  auto full = std::filesystem::weakly_canonical(path, error);
  if (error) full = path;
  return full.has_filename() ? full : full.parent_path();
}

/// Whether `path` is `dir` or lies in it. Both are resolved().
inline bool is_within(const std::filesystem::path& path, const std::filesystem::path& dir) {
  return std::mismatch(dir.begin(), dir.end(), path.begin(), path.end()).first == dir.end();
}

}  // namespace zoo

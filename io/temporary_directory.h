#pragma once

#include <filesystem>
#include <string_view>

namespace zoo {

/// A new directory among the system's temporary files. It is removed with this object.
class TemporaryDirectory {
 public:
  /// Its name begins with `name`. Throws SystemError.
  explicit TemporaryDirectory(std::string_view name);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace zoo

#pragma once
// Files that are either complete or absent.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace zoo {

/// The whole content of a file, a pipe or a terminal. Throws DataError (missing, a directory, unreadable, or
/// another device, which may have no end).
std::string read_file(const std::filesystem::path& path);

/// Makes a directory and its parents; returns whether it is new. Throws SystemError.
bool make_directory(const std::filesystem::path& dir);

/// Replaces `path` by `content` through a temporary file, a flush and a rename. Throws SystemError (e.g. disk
/// full) and then leaves the old file unchanged.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Lets `fill` write into a temporary directory beside `path`, flushes everything, and renames it to `path`.
/// So `path` is complete if it exists. An existing directory is replaced. On any error the temporary
/// directory is removed.
void write_directory_atomically(const std::filesystem::path& path,
                                const std::function<void(const std::filesystem::path&)>& fill);

/// Whether this is the name of a temporary that these functions leave if they are killed. The next writer of
/// the same path removes it.
bool is_temporary(std::string_view filename);

/// Points the symbolic link `link` at `target` (a relative path), atomically.
void replace_symlink(const std::filesystem::path& target, const std::filesystem::path& link);

/// A read-only memory mapping of a file. Throws DataError (missing, unreadable, not a regular file).
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  std::string_view bytes() const { return {data_.get(), size_}; }
  /// Shared ownership, for views that outlive this object.
  const std::shared_ptr<const char>& data() const { return data_; }

 private:
  std::shared_ptr<const char> data_;
  size_t size_ = 0;
};

}  // namespace zoo

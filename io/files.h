#pragma once
// Files that are either complete or not there.

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace zoo {

/// The whole of a file, a pipe or what is typed. Throws DataError (not there, a directory, another device,
/// which may have no end, unreadable).
std::string read_file(const std::filesystem::path& path);

/// Makes a directory and those above it; returns whether it was not there before. Throws SystemError.
bool make_directory(const std::filesystem::path& dir);

/// Replaces `path` by `content` through a temporary file, flush and rename. Throws SystemError (e.g. disk
/// full), in which case what was there before is untouched.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Lets `fill` write into a temporary directory beside `path`, flushes everything, and renames it to `path`.
/// A directory that can be seen is complete. An existing one is replaced. On any error the temporary is
/// removed.
void write_directory_atomically(const std::filesystem::path& path,
                                const std::function<void(const std::filesystem::path&)>& fill);

/// Whether this is a name of what these functions leave where they are killed. The next to write the same
/// path removes it.
bool is_temporary(std::string_view filename);

/// Points the symbolic link `link` at `target` (a relative path), atomically.
void replace_symlink(const std::filesystem::path& target, const std::filesystem::path& link);

/// A read-only memory mapping of a file. Throws DataError (not there, unreadable, not a regular file).
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

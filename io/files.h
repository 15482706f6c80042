#pragma once
// Files that are either complete or absent.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io/open_file.h"

namespace zoo {

/// Whether a path, which may come from a stranger, leads to a place below the directory that it is relative
/// to: it is not absolute, and has no "..".
bool stays_below(const std::filesystem::path& path);

/// The most that is read of a file, unless the caller says otherwise: 4 GiB.
inline constexpr int64_t kMostFileBytes = int64_t{4} << 30;

/// The whole content of a file. With Follow::everything it may also be a pipe or a terminal. Throws DataError
/// if the path is missing, a directory, unreadable, not to be followed, or another device, which may have no
/// end. Throws DataError, too, if the file has more than `most_bytes`; of a file nothing is read then.
std::string read_file(const std::filesystem::path& path, Follow follow = Follow::everything,
                      int64_t most_bytes = kMostFileBytes);

/// Whether there is anything at `path`, even a link that leads nowhere.
bool is_there(const std::filesystem::path& path);

/// Whether there is a regular file, or a directory, at `path` or where a link at `path` leads. False if the
/// system does not tell.
bool has_file(const std::filesystem::path& path);
bool has_directory(const std::filesystem::path& path);

/// Makes a directory and its parents; returns whether it is new. Throws SystemError.
bool make_directory(const std::filesystem::path& dir);

/// Whether there is a directory at `path`, which lies in a directory that may come from a stranger. Throws
/// CheckpointError if something else is there, such as a link to a directory.
bool has_subdirectory(const std::filesystem::path& path);
/// Makes it, unless it is there. Throws CheckpointError likewise, SystemError.
void make_subdirectory(const std::filesystem::path& path);

/// Replaces `path` by `content` through a temporary file, a flush and a rename. A link or a pipe at `path` is
/// replaced, too; where everything is followed, the content goes to where it leads. Throws SystemError (e.g.
/// disk full) and then leaves the old file unchanged.
void write_file_atomically(const std::filesystem::path& path, std::string_view content,
                           Follow follow = Follow::nothing);

/// The same with a content that `fill` writes to a path that does not exist yet, and flushes.
void replace_file_atomically(const std::filesystem::path& path,
                             const std::function<void(const std::filesystem::path&)>& fill);

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

/// A read-only memory mapping of a file, which may be a link to a file. Throws DataError (missing,
/// unreadable, not a regular file). If the file becomes shorter, reading the lost bytes kills the process
/// (SIGBUS), so it is for files that nobody else writes.
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

#pragma once
// Opening files. A run directory or a configuration may come from a stranger, so the caller says what a path
// may lead to.

#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>

namespace zoo {

/// What a path may lead to.
enum class Follow {
  everything,  // what the user names: also links, pipes, terminals. Opening a pipe waits for its other end.
  links,       // what a file names, and weights: a regular file or a link to one
  nothing,     // the other files of a run directory: a regular file itself. (Links in the path before it are
               // followed.)
};

/// An open file.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  int get() const { return fd_; }
  /// Gives up the file without closing it.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// Throws DataError "cannot read 'path': reason".
Descriptor open_for_reading(const std::filesystem::path& path, Follow follow);

/// `flags` as for open(): O_WRONLY, O_CREAT … but not O_TRUNC, which would come before the checks. Unless
/// everything is followed, a file with several names (hard links) is refused, because all of them would
/// change. Throws CheckpointError "cannot write 'path': reason" if the path leads to what it must not,
/// SystemError if it cannot be opened.
Descriptor open_for_writing(const std::filesystem::path& path, int flags, Follow follow);

/// Fills `to` from the byte `offset` of a file; returns how many bytes there were. Throws DataError.
size_t read_at(const Descriptor& file, const std::filesystem::path& path, uint64_t offset,
               std::span<char> to);

}  // namespace zoo

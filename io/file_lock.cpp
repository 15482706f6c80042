#include "io/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <string>

#include "io/open_file.h"

namespace zoo {
namespace {

/// Whether `path` still names the file that is open as `fd`: it may have been moved or removed.
bool is_still(const std::filesystem::path& path, int fd) {
  struct stat opened{}, named{};
  return ::fstat(fd, &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path) : path_(path) {
  while (true) {
    fd_ = open_for_writing(path_, O_RDWR | O_CREAT, Follow::nothing).release();
    held_ = ::flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (!held_) return;
    if (is_still(path_, fd_)) break;
    ::close(fd_);  // the previous holder removed the file before flock()
  }
  // The id is needed only for a message, so a full disk must not prevent the lock.
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, pid.data(), pid.size(), 0) < 0) return;
}

bool FileLock::is_held(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return file.get() >= 0 && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

FileLock::~FileLock() {
  if (held_ && is_still(path_, fd_)) ::unlink(path_.c_str());
  ::close(fd_);
}

std::optional<int64_t> FileLock::holder() const {
  std::array<char, 20> text{};
  const ssize_t size = held_ ? 0 : ::pread(fd_, text.data(), text.size(), 0);
  int64_t pid = 0;
  if (size <= 0 || std::from_chars(text.data(), text.data() + size, pid).ec != std::errc()) return {};
  return pid;
}

}  // namespace zoo

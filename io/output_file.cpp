#include "io/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw SystemError(
      fmt::format("cannot write '{}': {}", path.string(), std::generic_category().message(error)));
}

void sync_descriptor(int fd, const std::filesystem::path& path) {
  while (::fsync(fd) != 0) {
    // Pipes, devices and some network file systems have nothing to flush.
    if (errno == EINVAL || errno == EROFS || errno == ENOTSUP) return;
    if (errno != EINTR) fail(path, errno);
  }
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path, Mode mode) : path_(std::move(path)) {
  const int how = mode == Mode::kReplace ? O_TRUNC : mode == Mode::kCreate ? O_EXCL : O_APPEND;
  do {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
  } while (fd_ < 0 && errno == EINTR);
  if (fd_ < 0) fail(path_, errno);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::write(std::string_view bytes) {
  constexpr size_t most_at_once = size_t{1} << 30;  // Linux writes at most 2 GiB in one call
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), most_at_once));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, errno);
    if (written == 0) fail(path_, ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void OutputFile::sync() { sync_descriptor(fd_, path_); }

void OutputFile::close() {
  const int fd = std::exchange(fd_, -1);
  // After EINTR, Linux has closed the descriptor; a second close() might close another file.
  if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) fail(path_, errno);
}

void sync_path(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path, errno);
  try {
    sync_descriptor(fd, path);
  } catch (...) {
    ::close(fd);
    throw;
  }
  ::close(fd);
}

}  // namespace zoo

#include "io/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
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

int flags_of(OutputFile::Mode mode) {
  const int how = mode == OutputFile::Mode::kCreate   ? O_EXCL
                  : mode == OutputFile::Mode::kAppend ? O_APPEND
                                                      : 0;
  return O_WRONLY | O_CREAT | how;
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path, Mode mode, Follow follow)
    : path_(std::move(path)), file_(open_for_writing(path_, flags_of(mode), follow)) {
  if (mode == Mode::kReplace) truncate(0);
}

void OutputFile::write(std::string_view bytes) {
  constexpr size_t most_at_once = size_t{1} << 30;  // Linux writes at most 2 GiB in one call
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), std::min(bytes.size(), most_at_once));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path_, errno);
    if (written == 0) fail(path_, ENOSPC);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

void OutputFile::truncate(uint64_t size) {
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) fail(path_, errno);
  if (!S_ISREG(status.st_mode) || static_cast<uint64_t>(status.st_size) <= size) return;
  if (::ftruncate(file_.get(), static_cast<off_t>(size)) != 0) fail(path_, errno);
}

void OutputFile::sync() { sync_descriptor(file_.get(), path_); }

void OutputFile::close() {
  const int fd = file_.release();
  // After EINTR, Linux has closed the descriptor; a second close() might close another file.
  if (fd >= 0 && ::close(fd) != 0 && errno != EINTR) fail(path_, errno);
}

void sync_path(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(path, errno);
  sync_descriptor(file.get(), path);
}

}  // namespace zoo

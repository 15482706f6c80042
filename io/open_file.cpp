#include "io/open_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

/// Opens without waiting for the other end of a pipe, unless everything is followed.
int open_retrying(const std::filesystem::path& path, int flags, Follow follow) {
  flags |= O_CLOEXEC | O_NOCTTY;
  if (follow != Follow::everything) flags |= O_NONBLOCK;
  if (follow == Follow::nothing) flags |= O_NOFOLLOW;
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags, 0666);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/// Why a file of this kind must not be opened; nothing for a regular file, and for a directory, about which
/// open() complains itself.
std::optional<std::string> refusal(mode_t mode) {
  if (S_ISLNK(mode)) return "it is a link, which is not followed here: put the file itself in its place";
  if (S_ISFIFO(mode)) return "it is a pipe, not a regular file";
  if (S_ISSOCK(mode)) return "it is a socket, not a regular file";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "it is a device, not a regular file";
  return std::nullopt;
}

/// The same for a path that could not be opened.
std::optional<std::string> refusal_of(const std::filesystem::path& path, Follow follow) {
  struct stat status{};
  if (follow == Follow::everything) return std::nullopt;
  const int found =
      follow == Follow::nothing ? ::lstat(path.c_str(), &status) : ::stat(path.c_str(), &status);
  return found == 0 ? refusal(status.st_mode) : std::nullopt;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor open_for_reading(const std::filesystem::path& path, Follow follow) {
  const auto fail = [&](const std::string& why) {
    throw DataError(fmt::format("cannot read '{}': {}", path.string(), why));
  };
  Descriptor file(open_retrying(path, O_RDONLY, follow));
  if (file.get() < 0) {
    const int error = errno;
    fail(refusal_of(path, follow).value_or(reason(error)));
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) fail(reason(errno));
  if (S_ISDIR(status.st_mode)) fail(reason(EISDIR));
  if (follow != Follow::everything) {
    if (const auto why = refusal(status.st_mode)) fail(*why);
  }
  return file;
}

Descriptor open_for_writing(const std::filesystem::path& path, int flags, Follow follow) {
  const auto refuse = [&](const std::string& why) {
    throw CheckpointError(fmt::format("cannot write '{}': {}", path.string(), why));
  };
  Descriptor file(open_retrying(path, flags, follow));
  const int error = file.get() < 0 ? errno : 0;
  if (error != 0 && error != EEXIST) {
    if (const auto why = refusal_of(path, follow)) refuse(*why);
  }
  if (error != 0) throw SystemError(fmt::format("cannot write '{}': {}", path.string(), reason(error)));
  if (follow == Follow::everything) return file;
  struct stat status{};
  if (::fstat(file.get(), &status) != 0)
    throw SystemError(fmt::format("cannot write '{}': {}", path.string(), reason(errno)));
  if (const auto why = refusal(status.st_mode)) refuse(*why);
  if (status.st_nlink > 1)
    refuse("the file has other names (hard links), which would change, too: put a copy in its place");
  return file;
}

size_t read_at(const Descriptor& file, const std::filesystem::path& path, uint64_t offset,
               std::span<char> to) {
  constexpr size_t most_at_once = size_t{1} << 30;  // Linux reads at most 2 GiB in one call
  size_t size = 0;
  while (size < to.size()) {
    const ssize_t got = ::pread(file.get(), to.data() + size, std::min(to.size() - size, most_at_once),
                                static_cast<off_t>(offset + size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(fmt::format("cannot read '{}': {}", path.string(), reason(errno)));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  return size;
}

}  // namespace zoo

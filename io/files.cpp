#include "io/files.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "io/output_file.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_reading(const fs::path& path, int error) {
  throw DataError(fmt::format("cannot read '{}': {}", path.string(), std::generic_category().message(error)));
}

[[noreturn]] void fail_writing(const fs::path& path, const std::error_code& error) {
  throw SystemError(fmt::format("cannot write '{}': {}", path.string(), error.message()));
}

std::error_code last_error() { return {errno, std::generic_category()}; }

struct stat status_of(const Descriptor& file, const fs::path& path) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) fail_reading(path, errno);
  return status;
}

/// The directory that holds `path`; "x" and "x/" are entries of ".".
fs::path directory_of(const fs::path& path) {
  const auto parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

/// "runs/a/" means the entry "a" of "runs".
fs::path without_trailing_slash(const fs::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof(name) - 1) == 0 ? name : "localhost";
}

constexpr std::string_view kTemporary = ".tmp-";

/// The start of the names of temporaries for `path`. They are hidden, and contain the name of this machine,
/// because only process ids of this machine can be checked. No machine name contains a '~'.
std::string temporary_prefix(const fs::path& path) {
  // A name may have 255 bytes. Two long names may share the start of their temporaries: these differ further
  // on.
  constexpr size_t most_of_name = 120;
  return fmt::format(".{}{}{}~", path.filename().string().substr(0, most_of_name), kTemporary, host_name());
}

/// A name beside `path` that no other writer uses, and that nobody has put there in advance.
fs::path temporary_beside(const fs::path& path) {
  static std::atomic<int64_t> counter{0};
  while (true) {
    auto name = directory_of(path) / fmt::format("{}{}-{}", temporary_prefix(path), ::getpid(), counter++);
    if (!is_there(name)) return name;
  }
}

/// Removes the temporaries that killed writers of `path` left.
void remove_abandoned(const fs::path& path) {
  const std::string prefix = temporary_prefix(path);
  std::error_code error;
  for (fs::directory_iterator at(directory_of(path), error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    int64_t pid = 0;
    const auto parsed = std::from_chars(name.data() + prefix.size(), name.data() + name.size(), pid);
    const bool dead =
        parsed.ec == std::errc() && pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
    std::error_code ignored;
    if (dead) fs::remove_all(at->path(), ignored);
  }
}

/// The name of a temporary, which the destructor removes unless it was renamed.
class Temporary {
 public:
  explicit Temporary(const fs::path& final_path) : path_(temporary_beside(final_path)) {}
  ~Temporary() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const fs::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  fs::path path_;
};

/// Runs `write`. Its errors name the file that the caller asked for, not the temporary.
template <class Write>
void naming(const fs::path& path, const fs::path& temporary, Write write) {
  try {
    write();
  } catch (const SystemError& error) {
    std::string what = error.what();
    if (const size_t at = what.find(temporary.string()); at != what.npos) {
      what.replace(at, temporary.string().size(), path.string());
    }
    throw SystemError(what);
  }
}

void sync_tree(const fs::path& directory) {
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (!entry.is_symlink() && (entry.is_regular_file() || entry.is_directory())) sync_path(entry.path());
  }
  sync_path(directory);
}

/// The target of a link, or the path itself; it need not exist.
fs::path behind_links(fs::path path) {
  constexpr int most = 40;
  std::error_code error;
  for (int i = 0; i < most && fs::is_symlink(path, error); ++i) {
    const auto target = fs::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path;
}

/// Moves the directory `from` to `to` and removes the old `to`, if there is one.
void replace_directory(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!is_there(to)) {
    fs::rename(from, to, error);
    if (error) fail_writing(to, error);
    return;
  }
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE) == 0) {
    fs::remove_all(from, error);
    return;
  }
  // The file system cannot swap: for a moment only the old directory exists, under another name.
  const Temporary old(to);
  fs::rename(to, old.path(), error);
  if (error) fail_writing(to, error);
  fs::rename(from, to, error);
  if (error) {
    std::error_code ignored;
    fs::rename(old.path(), to, ignored);
    fail_writing(to, error);
  }
}

}  // namespace

bool stays_below(const std::filesystem::path& path) {
  return !path.is_absolute() && std::ranges::find(path, "..") == path.end();
}

std::string read_file(const fs::path& path, Follow follow, int64_t most_bytes) {
  const Descriptor file = open_for_reading(path, follow);
  const auto status = status_of(file, path);
  const bool is_device = S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode);
  if (is_device && ::isatty(file.get()) == 0)
    throw DataError(fmt::format("cannot read '{}': it is a device", path.string()));
  const auto check_size = [&](int64_t size) {
    if (size <= most_bytes) return;
    throw DataError(
        fmt::format("cannot read '{}': it is larger than {} MiB, the most that is read of such a file",
                    path.string(), most_bytes >> 20));
  };
  check_size(status.st_size);
  // One byte more than the reported size, so that the last read meets the end. Files in /proc report size 0.
  std::string content(static_cast<size_t>(status.st_size) + 1, '\0');
  constexpr size_t chunk = size_t{1} << 16;
  size_t size = 0;
  while (true) {
    if (size == content.size()) content.resize(size + std::max(size, chunk));
    const ssize_t got = ::read(file.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_reading(path, errno);
    if (got == 0) break;
    size += static_cast<size_t>(got);
    check_size(static_cast<int64_t>(size));
  }
  content.resize(size);
  return content;
}

bool make_directory(const fs::path& dir) {
  std::error_code error;
  const bool made = fs::create_directories(dir, error);
  if (error) throw SystemError(fmt::format("cannot make '{}': {}", dir.string(), error.message()));
  return made;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bool has_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

bool has_directory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool has_subdirectory(const fs::path& path) {
  std::error_code ignored;
  const auto status = fs::symlink_status(path, ignored);
  if (fs::exists(status) && !fs::is_directory(status)) {
    throw CheckpointError(
        fmt::format("cannot use '{}': it is {}, not a directory", path.string(),
                    fs::is_symlink(status) ? "a link, which is not followed here" : "a file"));
  }
  return fs::exists(status);
}

void make_subdirectory(const fs::path& path) {
  if (!has_subdirectory(path)) make_directory(path);
}

void write_file_atomically(const fs::path& given, std::string_view content, Follow follow) {
  const fs::path path = follow == Follow::everything ? behind_links(given) : given;
  std::error_code unknown;
  // Into a terminal or a pipe that the user names: there is no old content to keep.
  if (follow == Follow::everything && fs::is_other(path, unknown)) {
    OutputFile file(path, OutputFile::Mode::kAppend, follow);
    file.write(content);
    return file.close();
  }
  replace_file_atomically(path, [&](const fs::path& temporary) {
    OutputFile file(temporary, OutputFile::Mode::kCreate);
    file.write(content);
    file.sync();
    file.close();
  });
}

void replace_file_atomically(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  remove_abandoned(path);
  Temporary temporary(path);
  naming(path, temporary.path(), [&] { fill(temporary.path()); });
  std::error_code error;
  fs::rename(temporary.path(), path, error);
  if (error) fail_writing(path, error);
  temporary.keep();
  sync_path(directory_of(path));
}

void write_directory_atomically(const fs::path& given, const std::function<void(const fs::path&)>& fill) {
  const fs::path path = without_trailing_slash(given);
  remove_abandoned(path);
  Temporary temporary(path);
  std::error_code error;
  if (!fs::create_directory(temporary.path(), error) || error) fail_writing(path, error);
  naming(path, temporary.path(), [&] {
    fill(temporary.path());
    sync_tree(temporary.path());
  });
  replace_directory(temporary.path(), path);
  temporary.keep();
  sync_path(directory_of(path));
}

bool is_temporary(std::string_view filename) {
  return filename.starts_with('.') && filename.find(kTemporary) != filename.npos;
}

void replace_symlink(const fs::path& target, const fs::path& link) {
  remove_abandoned(link);
  Temporary temporary(link);
  if (::symlink(target.c_str(), temporary.path().c_str()) != 0) fail_writing(link, last_error());
  std::error_code error;
  fs::rename(temporary.path(), link, error);
  if (error) fail_writing(link, error);
  temporary.keep();
  sync_path(directory_of(link));
}

MappedFile::MappedFile(const fs::path& path) {
  const Descriptor file = open_for_reading(path, Follow::links);
  const auto status = status_of(file, path);
  size_ = static_cast<size_t>(status.st_size);
  if (size_ == 0) return;  // the kernel cannot map empty files
  void* const start = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (start == MAP_FAILED) fail_reading(path, errno);
  const size_t size = size_;
  data_ = std::shared_ptr<const char>(static_cast<const char*>(start),
                                      [size](const char* p) { ::munmap(const_cast<char*>(p), size); });
}

}  // namespace zoo

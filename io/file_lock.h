#pragma once
// One process at a time.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace zoo {

/// A lock on a file, held while this object lives. It is the kernel's (flock): a process that dies, however
/// it dies, lets go of it.
class FileLock {
 public:
  /// Makes the file and takes the lock, unless somebody has it: see held(). On a file system without locks
  /// everybody gets it. Throws SystemError where the file cannot be made.
  explicit FileLock(const std::filesystem::path& path);
  /// Removes the file if the lock was held.
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  bool held() const { return held_; }
  /// The process that has the lock where this one has not, if it got to say so.
  std::optional<int64_t> holder() const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  bool held_ = false;
};

}  // namespace zoo

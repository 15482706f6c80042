#pragma once
// A lock that only one process holds at a time.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace zoo {

/// A lock on a file, held while this object lives. The kernel keeps the lock (flock) and releases it whenever
/// the process dies.
class FileLock {
 public:
  /// Makes the file and takes the lock, unless it is already held: see held(). On a file system without
  /// locks, every process gets it. Throws SystemError if the file cannot be made, CheckpointError if
  /// something else than a file is there, such as a link.
  explicit FileLock(const std::filesystem::path& path);
  /// Removes the file if the lock was held.
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// Whether another lock on this file is held now. Makes and changes nothing.
  static bool is_held(const std::filesystem::path& path);

  bool held() const { return held_; }
  /// The id of the other process that holds the lock, if there is one and it wrote its id.
  std::optional<int64_t> holder() const;

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  bool held_ = false;
};

}  // namespace zoo

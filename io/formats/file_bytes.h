#pragma once
// The bytes of a file that may come from a stranger, read where they are asked for.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "io/open_file.h"

namespace zoo {

class FileBytes {
 public:
  /// Links are followed. Throws CheckpointError.
  explicit FileBytes(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }
  /// Whether these bytes are in the file.
  bool has(uint64_t begin, uint64_t size) const { return begin <= size_ && size <= size_ - begin; }
  /// Throws CheckpointError if the file ends before. It is not mapped: a mapped file that becomes shorter
  /// kills the process.
  void read(uint64_t begin, size_t size, void* to) const;
  std::string read(uint64_t begin, size_t size) const;

  /// Throws CheckpointError: "'PATH': …".
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    fail_with(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  [[noreturn]] void fail_with(std::string_view problem) const;

  std::filesystem::path path_;
  Descriptor file_;
  uint64_t size_ = 0;
};

/// The number in the first `n` bytes from `begin` on, the lowest byte first. They must be there.
uint64_t little_endian_number(std::string_view bytes, size_t begin, size_t n);

}  // namespace zoo

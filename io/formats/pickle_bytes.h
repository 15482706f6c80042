#pragma once
// The bytes of a pickle in a file, one after the other.

#include <cstdint>
#include <string>

#include "io/formats/file_bytes.h"

namespace zoo {

/// Reads ahead, so that a byte does not cost a call of the system. All throw CheckpointError at the end.
class PickleBytes {
 public:
  /// The bytes `begin` … `end` (excluded) of a file that outlives this object.
  PickleBytes(const FileBytes& file, uint64_t begin, uint64_t end) : file_(file), at_(begin), end_(end) {}

  uint64_t position() const { return at_; }
  /// The next `n` bytes.
  std::string take(uint64_t n);
  /// A number of `n` bytes, the lowest first.
  uint64_t number(size_t n) { return little_endian_number(take(n), 0, n); }
  uint8_t byte() { return static_cast<uint8_t>(number(1)); }
  /// What stands before the next line break, which is taken, too. It has at most 1,000 bytes.
  std::string line();

 private:
  uint64_t left() const { return end_ - at_; }

  const FileBytes& file_;
  uint64_t at_, end_, begin_ = 0;  // begin_: of the buffer
  std::string buffer_;
};

}  // namespace zoo

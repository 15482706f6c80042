#pragma once
// The lines of a text file of any size, one after the other: a corpus need not fit into memory.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/open_file.h"
#include "io/sha256.h"

namespace zoo {

/// The longest line that is read: 1 GiB.
inline constexpr size_t kMostLineBytes = size_t{1} << 30;

/// Lines of UTF-8 without their ends ("\n", "\r\n") and without a byte order mark at the beginning of the
/// file. Reads the file in pieces.
///
///   FileLines lines(path);
///   while (lines.next()) use(lines.number(), lines.line());
class FileLines {
 public:
  /// Throws DataError if the file cannot be read. Links are followed.
  explicit FileLines(const std::filesystem::path& path);

  /// Goes on to the next line; whether there was one. A line end at the end of the file does not start
  /// another line. Throws DataError for invalid UTF-8 (with line and byte) and a line above kMostLineBytes.
  bool next();
  /// Valid until next().
  std::string_view line() const { return line_; }
  /// From 1 on.
  int64_t number() const { return number_; }

  /// Goes back to the beginning of the file.
  void rewind();
  /// The SHA-256 of the whole file, wherever its lines are read.
  std::string hash() const { return sha256_of_file(file_, path_); }

 private:
  bool fill();

  std::filesystem::path path_;
  Descriptor file_;
  std::string buffer_;   // what was read and not yet passed
  size_t begin_ = 0;     // of the part of the buffer that is not yet passed
  uint64_t offset_ = 0;  // of the buffer's end in the file
  bool at_end_ = false;  // of the file
  std::string_view line_;
  int64_t number_ = 0;
};

}  // namespace zoo

#pragma once
// Bytes that may be compressed with gzip.

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace zoo {

/// The bytes of a file, decompressed if they are compressed with gzip. Reads no more than it is asked for.
/// `bytes` must outlive it. Throws SystemError if zlib has no memory.
class GzipReader {
 public:
  explicit GzipReader(std::string_view bytes);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  /// Fills `to`; returns how many bytes there were.
  size_t read(std::span<uint8_t> to);
  /// Whether all bytes have been read and, if they are compressed, their check sums are right.
  bool is_at_end() const;

 private:
  std::string_view rest() const { return bytes_.substr(bytes_.size() - stream_.avail_in); }

  std::string_view bytes_;
  bool is_compressed_ = false;
  z_stream stream_ = {};
  int state_ = Z_OK;
};

/// The whole content of a file without compression. Throws DataError if it cannot be read, is damaged, or has
/// more than `most_bytes`.
std::string read_unpacked(const std::filesystem::path& path, int64_t most_bytes);

}  // namespace zoo

#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "io/open_file.h"

namespace zoo {

/// A SHA-256 over bytes that come in pieces.
class Sha256 {
 public:
  void add(std::string_view bytes);
  /// Hex digest of all bytes so far.
  std::string digest() const;

 private:
  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string rest_;      // bytes that do not fill a block
  uint64_t n_bytes_ = 0;  // so far
};

/// Hex digest of a SHA-256 over `bytes`.
std::string sha256(std::string_view bytes);
/// The same over the content of a file, which is read in pieces; links are followed. Throws DataError.
std::string sha256_of_file(const std::filesystem::path& path);
/// The same for a file that is open.
std::string sha256_of_file(const Descriptor& file, const std::filesystem::path& path);

}  // namespace zoo

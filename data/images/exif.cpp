#include "data/images/exif.h"

namespace zoo {
namespace {

/// Numbers of n bytes at any place; 0 past the end.
class TiffReader {
 public:
  explicit TiffReader(std::string_view bytes) : bytes_(bytes), is_big_endian_(bytes.starts_with("MM")) {}

  uint64_t number(uint64_t at, uint64_t n_bytes) const {
    if (at > bytes_.size() || bytes_.size() - at < n_bytes) return 0;
    uint64_t value = 0;
    for (uint64_t i = 0; i < n_bytes; ++i) {
      const uint64_t place = is_big_endian_ ? i : n_bytes - 1 - i;
      value = value << 8 | static_cast<unsigned char>(bytes_[at + place]);
    }
    return value;
  }

 private:
  std::string_view bytes_;
  bool is_big_endian_;
};

}  // namespace

int64_t exif_orientation(std::string_view exif) {
  using std::string_view_literals::operator""sv;
  constexpr uint64_t magic = 42, orientation = 0x0112, entry_size = 12;
  // Whole numbers, and those that may have a sign.
  constexpr uint64_t is_byte = 1, is_short = 3, is_long = 4, is_sbyte = 6, is_sshort = 8, is_slong = 9;
  if (exif.starts_with("Exif\0\0"sv)) exif.remove_prefix(6);
  if (!exif.starts_with("II") && !exif.starts_with("MM")) return 1;
  const TiffReader tiff(exif);
  if (tiff.number(2, 2) != magic) return 1;
  const uint64_t directory = tiff.number(4, 4), n_entries = tiff.number(directory, 2);
  for (uint64_t i = 0; i < n_entries; ++i) {
    const uint64_t entry = directory + 2 + i * entry_size;
    if (tiff.number(entry, 2) != orientation) continue;
    // The standard says SHORT; some cameras and programs write other whole numbers.
    const uint64_t type = tiff.number(entry + 2, 2);
    const uint64_t n_bytes = type == is_byte || type == is_sbyte     ? 1
                             : type == is_short || type == is_sshort ? 2
                             : type == is_long || type == is_slong   ? 4
                                                                     : 0;
    const uint64_t value = tiff.number(entry + 8, n_bytes);
    return value >= 1 && value <= 8 ? static_cast<int64_t>(value) : 1;
  }
  return 1;
}

}  // namespace zoo

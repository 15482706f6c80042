#pragma once
// IDX files, the format of MNIST and Fashion-MNIST: one array of bytes, plain or compressed with gzip (RFC
// 1952, with any number of members).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace zoo {

/// An array of bytes, last dimension fastest.
struct IdxArray {
  std::vector<int64_t> sizes;
  std::vector<uint8_t> values;
};

/// What is read at most.
struct IdxLimits {
  int64_t bytes = int64_t{1} << 30;     // of the file, and of the array
  std::optional<int64_t> entries = {};  // the first dimension must have this size; default: any
};

/// Reads an array with `n_dimensions` dimensions. Throws DataError if the file is no such array, is shorter
/// or longer than its header says, is damaged (gzip has check sums), or goes beyond the limits, of which
/// nothing more than the header is read then.
IdxArray read_idx(const std::filesystem::path& path, int64_t n_dimensions, const IdxLimits& limits = {});

/// Whether the name of a file is usual for images in this format: it contains "idx3".
bool is_idx_name(const std::filesystem::path& path);

/// The file with the labels of a file of images: "images-idx3" in the name becomes "labels-idx1". Throws
/// DataError if the name does not have that.
std::filesystem::path idx_labels_of(const std::filesystem::path& images);

}  // namespace zoo

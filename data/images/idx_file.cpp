#include "data/images/idx_file.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "data/gzip_reader.h"
#include "io/files.h"

namespace zoo {
namespace {

constexpr std::string_view kImages = "images-idx3", kLabels = "labels-idx1";

}  // namespace

IdxArray read_idx(const std::filesystem::path& path, int64_t n_dimensions, const IdxLimits& limits) {
  const auto fail = [&](const std::string& problem) {
    throw DataError(fmt::format("{}: {}", path.string(), problem));
  };
  const std::string content = read_file(path, Follow::links, limits.bytes);
  GzipReader reader(content);
  constexpr uint8_t bytes_type = 8;
  std::array<uint8_t, 4> magic{};
  if (reader.read(magic) != magic.size() || magic[0] != 0 || magic[1] != 0 || magic[2] != bytes_type ||
      magic[3] != n_dimensions)
    fail(fmt::format("this is no IDX file of bytes with {} dimension{}", n_dimensions,
                     n_dimensions == 1 ? "" : "s"));
  IdxArray array;
  int64_t n_bytes = 1;
  for (int64_t i = 0; i < n_dimensions; ++i) {
    std::array<uint8_t, 4> size{};
    if (reader.read(size) != size.size()) fail("the header is truncated");
    array.sizes.push_back(int64_t{size[0]} << 24 | int64_t{size[1]} << 16 | int64_t{size[2]} << 8 | size[3]);
    if (array.sizes.back() == 0) fail("the array is empty");
    if (i == 0 && limits.entries && array.sizes.front() != *limits.entries) {
      fail(fmt::format("has {} images, but {} labels belong to it: the numbers must be equal",
                       array.sizes.front(), *limits.entries));
    }
    if (array.sizes.back() > limits.bytes / n_bytes) {
      fail(fmt::format("the header says {} values: more than {} MiB, the most that is read",
                       fmt::join(array.sizes, " x "), limits.bytes >> 20));
    }
    n_bytes *= array.sizes.back();
  }
  // Memory is taken as the bytes come, because the header may lie.
  constexpr int64_t at_once = int64_t{16} << 20;
  while (std::ssize(array.values) < n_bytes) {
    const auto before = array.values.size();
    const auto wanted = static_cast<size_t>(std::min(at_once, n_bytes - std::ssize(array.values)));
    array.values.resize(before + wanted);
    if (reader.read(std::span(array.values).subspan(before)) != wanted)
      fail(fmt::format("the file is truncated or damaged: its header says {} values",
                       fmt::join(array.sizes, " x ")));
  }
  std::array<uint8_t, 1> rest{};
  if (reader.read(rest) != 0)
    fail(fmt::format("the file is longer than its header says, {} values", fmt::join(array.sizes, " x ")));
  if (!reader.is_at_end())
    fail("the compressed file is truncated or damaged: its end or its check sum is not as it must be");
  return array;
}

bool is_idx_name(const std::filesystem::path& path) {
  return path.filename().string().find("idx3") != std::string::npos;
}

std::filesystem::path idx_labels_of(const std::filesystem::path& images) {
  std::string name = images.filename().string();
  const size_t at = name.find(kImages);
  if (at == name.npos) {
    throw DataError(
        fmt::format("{}: an IDX file of images must have '{}' in its name, so that its labels can be found",
                    images.string(), kImages));
  }
  return images.parent_path() / name.replace(at, kImages.size(), kLabels);
}

}  // namespace zoo

#include "io/tensor_source.h"

#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"
#include "io/file_kind.h"

namespace zoo {

std::optional<uint64_t> size_in_bytes(const std::vector<uint64_t>& shape, size_t item_size) {
  constexpr auto most = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  uint64_t size = item_size;
  bool empty = false;
  for (const uint64_t dim : shape) {
    if (dim == 0) {
      empty = true;
    } else if (dim > most / size) {
      return std::nullopt;
    } else {
      size *= dim;
    }
  }
  return empty ? 0 : size;
}

Descriptor open_tensor_file(const std::filesystem::path& path) {
  try {
    auto file = open_for_reading(path, Follow::links);
    std::array<char, kStrayHead> head{};
    const size_t n = read_at(file, path, 0, head);
    if (const auto stray = stray_content({head.data(), n}))
      throw CheckpointError(fmt::format("'{}': {}", path.string(), *stray));
    return file;
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
}

}  // namespace zoo

#include "io/formats/gguf_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"
#include "io/files.h"
#include "io/json_document.h"

namespace zoo {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view kMagic = "GGUF";
constexpr uint64_t kMostKeys = 1 << 14, kMostTensors = 1 << 18, kMostDimensions = 4;
constexpr uint64_t kMostHeader = uint64_t{256} << 20;  // bytes of all keys and shapes
constexpr uint64_t kMostValues = uint64_t{1} << 23;    // in all lists together

template <class... Args>
[[noreturn]] void fail(const fs::path& path, fmt::format_string<Args...> format, Args&&... args) {
  throw CheckpointError(fmt::format("'{}' is damaged or not a GGUF file: {}", path.string(),
                                    fmt::format(format, std::forward<Args>(args)...)));
}

/// Reads the beginning of a file from the front.
class HeaderReader {
 public:
  HeaderReader(const Descriptor& file, const fs::path& path, uint64_t file_size)
      : file_(file), path_(path), end_(std::min(file_size, kMostHeader)), is_cut_(file_size > kMostHeader) {}

  uint64_t position() const { return position_; }

  template <class T>
  T number() {
    std::array<char, sizeof(T)> bytes;
    read(bytes);
    return std::bit_cast<T>(bytes);
  }

  std::string text() {
    const auto size = number<uint64_t>();
    if (size > end_ - position_) too_long();
    std::string result(static_cast<size_t>(size), '\0');
    read(result);
    return result;
  }

  /// Reads how many things follow. Each takes at least `bytes` bytes.
  uint64_t count(uint64_t most, uint64_t bytes, const char* what) {
    const auto n = number<uint64_t>();
    if (n > most) fail(path_, "{} {}; at most {} are supported", n, what, most);
    if (n > (end_ - position_) / bytes) too_long();
    return n;
  }

  Json value(uint32_t type) { return value(type, Depth::value); }

 private:
  enum class Depth { value, element };

  Json value(uint32_t type, Depth depth) {
    switch (type) {
      case 0:
        return number<uint8_t>();
      case 1:
        return number<int8_t>();
      case 2:
        return number<uint16_t>();
      case 3:
        return number<int16_t>();
      case 4:
        return number<uint32_t>();
      case 5:
        return number<int32_t>();
      case 6:
        return shortest(number<float>());
      case 7:
        return number<uint8_t>() != 0;
      case 8:
        return text();
      case 9:
        if (depth == Depth::value) return list();
        fail(path_, "a list of lists, which is not supported");
      case 10:
        return number<uint64_t>();
      case 11:
        return number<int64_t>();
      case 12:
        return number<double>();
      default:
        fail(path_, "a value of the unknown type {}", type);
    }
  }

  Json list() {
    const auto type = number<uint32_t>();
    const auto n = count(kMostValues - n_values_, 1, "values of lists");
    n_values_ += n;
    Json::array_t values;
    values.reserve(static_cast<size_t>(n));
    for (uint64_t i = 0; i < n; ++i) values.push_back(value(type, Depth::element));
    return values;
  }

  void read(std::span<char> to) {
    if (to.size() > end_ - position_) too_long();
    while (!to.empty()) {
      if (position_ < begin_of_buffer_ || position_ >= begin_of_buffer_ + buffer_.size()) fill();
      const auto at = static_cast<size_t>(position_ - begin_of_buffer_);
      const size_t n = std::min(to.size(), buffer_.size() - at);
      std::memcpy(to.data(), buffer_.data() + at, n);
      to = to.subspan(n);
      position_ += n;
    }
  }

  void fill() {
    constexpr size_t piece = 1 << 16;
    buffer_.resize(piece);
    size_t n = 0;
    try {
      n = read_at(file_, path_, position_, buffer_);
    } catch (const DataError& error) {
      throw CheckpointError(error.what());
    }
    if (n == 0) fail(path_, "it ends at byte {}; was it cut while it was read?", position_);
    buffer_.resize(n);
    begin_of_buffer_ = position_;
  }

  [[noreturn]] void too_long() const {
    if (is_cut_) fail(path_, "its keys and shapes take more than {} bytes", kMostHeader);
    fail(path_, "it goes on after its end at byte {}; is the file truncated?", end_);
  }

  const Descriptor& file_;
  const fs::path& path_;
  uint64_t end_, position_ = 0, n_values_ = 0;
  bool is_cut_;
  std::vector<char> buffer_;
  uint64_t begin_of_buffer_ = 0;
};

uint64_t size_of(const Descriptor& file, const fs::path& path) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) fail(path, "its size is unknown");
  return static_cast<uint64_t>(status.st_size);
}

}  // namespace

GgufFile::GgufFile(const fs::path& path) : path_(path), file_(open_tensor_file(path)) {
  const uint64_t file_size = size_of(file_, path);
  HeaderReader reader(file_, path_, file_size);
  if (file_size < 24 || reader.number<std::array<char, 4>>() != std::to_array({'G', 'G', 'U', 'F'}))
    fail(path, "it does not begin with {}", kMagic);
  if (const auto version = reader.number<uint32_t>(); version != 2 && version != 3)
    fail(path, "it has version {}; 2 and 3 are supported", version);
  constexpr uint64_t shortest_tensor = 24, shortest_key = 13;  // bytes
  const auto n_tensors = reader.count(kMostTensors, shortest_tensor, "tensors");
  const auto n_keys = reader.count(kMostKeys, shortest_key, "keys");
  for (uint64_t i = 0; i < n_keys; ++i) {
    const auto key = reader.text();
    const auto type = reader.number<uint32_t>();
    if (!metadata_.emplace(key, reader.value(type)).second)
      fail(path, "the key '{}' appears twice", excerpt(key));
  }
  std::vector<std::pair<uint64_t, uint64_t>> ranges;  // from the start of the data
  for (uint64_t i = 0; i < n_tensors; ++i) {
    const auto name = reader.text();
    Entry entry{};
    const auto rank = reader.number<uint32_t>();
    if (rank > kMostDimensions)
      fail(path, "'{}' has {} dimensions; at most {} are supported", excerpt(name), rank, kMostDimensions);
    std::vector<uint64_t> lengths(rank);
    for (auto& length : lengths) length = reader.number<uint64_t>();
    entry.shape.assign(lengths.rbegin(), lengths.rend());
    const auto n_elements = size_in_bytes(lengths, 1);
    if (!n_elements) fail(path, "the shape of '{}' overflows 64 bits", excerpt(name));
    entry.type = reader.number<uint32_t>();
    entry.begin = reader.number<uint64_t>();
    if (const auto* const type = find_block_type(entry.type)) {
      const auto row = entry.shape.empty() ? 1 : entry.shape.back();
      if (row % type->elements != 0)
        fail(path, "the rows of '{}' are no whole blocks of {}", excerpt(name), type->name);
      const auto size = size_in_bytes({*n_elements / static_cast<uint64_t>(type->elements)}, type->bytes);
      if (!size || *size > file_size || entry.begin > file_size - *size)
        fail(path, "'{}' goes past the end of the file; is it truncated?", excerpt(name));
      ranges.emplace_back(entry.begin, entry.begin + *size);
    }
    if (!entries_.emplace(name, std::move(entry)).second)
      fail(path, "the tensor '{}' appears twice", excerpt(name));
  }
  const auto alignment = metadata_.value("general.alignment", Json(uint32_t{32}));
  if (!alignment.is_number_unsigned() || alignment.get<uint64_t>() == 0 ||
      alignment.get<uint64_t>() > 1 << 20)
    fail(path, "general.alignment is {}", excerpt(json_text(alignment)));
  const auto step = alignment.get<uint64_t>();
  const uint64_t data = (reader.position() + step - 1) / step * step;
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second)
      fail(path, "two tensors overlap at byte {} of the data", ranges[i].first);
  }
  if (!ranges.empty() && (data > file_size || ranges.back().second > file_size - data))
    fail(path, "the last tensor goes past the end of the file ({} bytes); is it truncated?", file_size);
  for (auto& [name, entry] : entries_) entry.begin += data;
}

std::vector<std::string> GgufFile::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : entries_) result.push_back(name);
  return result;
}

const GgufFile::Entry& GgufFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  const auto near = nearest(name, names());
  throw CheckpointError(fmt::format("'{}' has no tensor '{}'{}", path_.string(), excerpt(name),
                                    near ? fmt::format("; did you mean '{}'?", *near) : ""));
}

const BlockType& GgufFile::stored_as(const std::string& name) const {
  const auto type = entry(name).type;
  if (const auto* const known = find_block_type(type)) return *known;
  std::vector<std::string_view> names;
  for (const auto& one : block_types()) names.push_back(one.name);
  throw CheckpointError(fmt::format("'{}': the tensor '{}' has the format {}, which is not one of {}",
                                    path_.string(), excerpt(name), type, fmt::join(names, ", ")));
}

torch::ScalarType GgufFile::dtype(const std::string& name) const { return stored_as(name).type; }

void GgufFile::read_into(const torch::Tensor& to, const std::string& name) const {
  const auto& stored = entry(name);
  if (to.sizes() != torch::IntArrayRef(stored.shape)) {
    throw CheckpointError(fmt::format("'{}': '{}' has the shape ({}), but ({}) is needed", path_.string(),
                                      excerpt(name), fmt::join(stored.shape, ", "),
                                      fmt::join(to.sizes(), ", ")));
  }
  read_elements(to, name, 0);
}

void GgufFile::read_rows_into(const torch::Tensor& to, const std::string& name, int64_t first) const {
  const auto& shape = entry(name).shape;
  auto rows = shape;
  if (!rows.empty() && to.dim() > 0) rows.front() = to.size(0);
  // Of a vector, a row is a number, and may be a part of a block.
  const bool fits = shape.size() > 1 && to.sizes() == torch::IntArrayRef(rows) && first >= 0 &&
                    to.size(0) <= shape.front() - first;
  if (!fits) {
    throw CheckpointError(fmt::format("'{}': '{}' has the shape ({}), but rows ({}) from {} on are needed",
                                      path_.string(), excerpt(name), fmt::join(shape, ", "),
                                      fmt::join(to.sizes(), ", "), first));
  }
  const int64_t n = to.size(0) == 0 ? 0 : to.numel() / to.size(0);
  read_elements(to, name, first * n);
}

/// Reads piece by piece, so that a tensor that is converted is not in memory twice.
void GgufFile::read_elements(const torch::Tensor& to, const std::string& name, int64_t first) const {
  const auto& stored = entry(name);
  const auto& type = stored_as(name);
  constexpr int64_t most_elements = int64_t{1} << 20;  // whole blocks of every format
  const bool is_direct = to.is_contiguous();
  auto flat = is_direct ? to.view({-1}) : torch::empty({to.numel()}, to.options());
  std::vector<std::byte> bytes;
  for (int64_t begin = 0; begin < flat.numel(); begin += most_elements) {
    const int64_t n = std::min(most_elements, flat.numel() - begin);
    const auto n_blocks = static_cast<size_t>(n / type.elements);
    bytes.resize(n_blocks * type.bytes);
    const uint64_t at = stored.begin + static_cast<uint64_t>((first + begin) / type.elements) * type.bytes;
    size_t got = 0;
    try {
      got = read_at(file_, path_, at, {reinterpret_cast<char*>(bytes.data()), bytes.size()});
    } catch (const DataError& error) {
      throw CheckpointError(error.what());
    }
    if (got < bytes.size()) fail(path_, "it ends at byte {}; was it cut while it was read?", at + got);
    auto piece =
        torch::empty({n}, torch::TensorOptions().dtype(type.decode == nullptr ? type.type : torch::kFloat32));
    if (type.decode == nullptr) {
      std::memcpy(piece.mutable_data_ptr(), bytes.data(), bytes.size());
    } else {
      type.decode(bytes, {piece.mutable_data_ptr<float>(), static_cast<size_t>(n)});
    }
    flat.slice(0, begin, begin + n).copy_(piece);
  }
  if (!is_direct) torch::Tensor(to).copy_(flat.view(to.sizes()));
}

double shortest(float value) {
  std::array<char, 32> text;
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value);
  double result = value;
  std::from_chars(text.data(), written.ptr, result);
  return result;
}

bool is_gguf(const fs::path& path) {
  if (!has_file(path)) return false;
  std::array<char, kMagic.size()> magic{};
  try {
    const auto file = open_for_reading(path, Follow::links);
    return read_at(file, path, 0, magic) == magic.size() &&
           std::string_view(magic.data(), magic.size()) == kMagic;
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace zoo

#include "io/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"
#include "io/json_document.h"
#include "io/output_file.h"

namespace zoo {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian and data is used as it is");

constexpr uint64_t kMaxHeader = 100'000'000;  // the reference implementation's limit
constexpr size_t kMaxRank = 64;               // torch's own limit for most operations
constexpr size_t kMaxEntries = 1 << 18;  // tensors, and pairs of metadata; the largest models have 1 << 17
constexpr std::string_view kMetadataKey = "__metadata__";

struct Dtype {
  std::string_view name;
  torch::ScalarType type;
};

/// In the order of the reference implementation: wide alignment first.
constexpr Dtype kDtypes[] = {
    {"I64", torch::kInt64},     {"F64", torch::kFloat64},
    {"F32", torch::kFloat32},   {"I32", torch::kInt32},
    {"BF16", torch::kBFloat16}, {"F16", torch::kFloat16},
    {"I16", torch::kInt16},     {"F8_E4M3", torch::kFloat8_e4m3fn},
    {"I8", torch::kInt8},       {"U8", torch::kUInt8},
    {"BOOL", torch::kBool},
};

constexpr std::string_view kDtypeNames = "F64, F32, F16, BF16, F8_E4M3, I64, I32, I16, I8, U8, BOOL";

template <class... Args>
[[noreturn]] void fail(const std::filesystem::path& path, fmt::format_string<Args...> format,
                       Args&&... args) {
  throw CheckpointError(fmt::format("'{}' is damaged or not a safetensors file: {}", path.string(),
                                    fmt::format(format, std::forward<Args>(args)...)));
}

struct RawEntry {
  std::optional<std::string> dtype;
  std::optional<std::vector<uint64_t>> shape;
  std::optional<std::vector<uint64_t>> offsets;
};

/// Reads the header event by event. Its form is fixed, so deep nesting and unexpected values stop the parse
/// at once. Repeated names are found; a JSON tree would drop them silently.
class HeaderParser final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::map<std::string, RawEntry> tensors;
  StringMap metadata;
  std::string problem;  // why the parse stopped

  bool key(string_t& name) override {
    if (depth_ == 1) {
      in_metadata_ = name == kMetadataKey;
      const bool fresh =
          in_metadata_ ? !std::exchange(has_metadata_, true) : tensors.try_emplace(name).second;
      if (!fresh) return stop(fmt::format("the name '{}' appears twice", excerpt(name)));
      if (tensors.size() > kMaxEntries) return stop(fmt::format("more than {} tensors", kMaxEntries));
      tensor_ = name;
      return true;
    }
    key_ = name;
    if (in_metadata_) {
      if (metadata.size() == kMaxEntries)
        return stop(fmt::format("more than {} pairs of metadata", kMaxEntries));
      return metadata.try_emplace(name).second ||
             stop(fmt::format("metadata '{}' appears twice", excerpt(name)));
    }
    const RawEntry& entry = tensors[tensor_];
    const bool again = name == "dtype"   ? entry.dtype.has_value()
                       : name == "shape" ? entry.shape.has_value()
                                         : entry.offsets.has_value();
    if (name != "dtype" && name != "shape" && name != "data_offsets")
      return stop(fmt::format("'{}' has the unknown key '{}'", excerpt(tensor_), excerpt(name)));
    return !again || stop(fmt::format("'{}' has the key '{}' twice", excerpt(tensor_), name));
  }

  bool start_object(size_t) override {
    if (in_list_ || depth_ >= 2) return stop_at("an object where none belongs");
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    return true;
  }

  bool start_array(size_t) override {
    if (depth_ != 2 || in_metadata_ || in_list_ || key_ == "dtype")
      return stop_at("a list where none belongs");
    list().emplace();
    in_list_ = true;
    return true;
  }
  bool end_array() override {
    in_list_ = false;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (!in_list_) return stop_at("a number where none belongs");
    if (list()->size() == kMaxRank) return stop_at(fmt::format("a list of more than {} numbers", kMaxRank));
    list()->push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (depth_ == 2 && in_metadata_) {
      metadata[key_] = value;
      return true;
    }
    if (depth_ != 2 || in_list_ || key_ != "dtype") return stop_at("a string where none belongs");
    tensors[tensor_].dtype = value;
    return true;
  }

  bool number_integer(number_integer_t) override { return stop_at("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return stop_at("a number that is not a 64-bit integer");
  }
  bool null() override { return stop_at("null"); }
  bool boolean(bool) override { return stop_at("true or false"); }
  bool binary(binary_t&) override { return stop_at("binary data"); }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception&) override {
    return stop(fmt::format("the header is not valid JSON at byte {}", position));
  }

 private:
  bool stop(std::string why) {
    problem = std::move(why);
    return false;
  }
  bool stop_at(std::string_view what) {
    if (depth_ == 0) return stop("the header is not a JSON object");
    if (depth_ == 1) return stop(fmt::format("'{}' has {}", excerpt(tensor_), what));
    return stop(fmt::format("'{}' of '{}' has {}", excerpt(key_), excerpt(tensor_), what));
  }
  std::optional<std::vector<uint64_t>>& list() {
    RawEntry& entry = tensors[tensor_];
    return key_ == "shape" ? entry.shape : entry.offsets;
  }

  int depth_ = 0;
  bool in_metadata_ = false, has_metadata_ = false, in_list_ = false;
  std::string tensor_, key_;
};

std::string quoted_json(const std::string& text, const std::filesystem::path& path) {
  if (find_invalid_utf8(text)) {
    throw CheckpointError(fmt::format("cannot write '{}': the name or metadata '{}' is not valid UTF-8",
                                      path.string(), excerpt(text)));
  }
  return json_text(nlohmann::json(text));
}

/// Reads `size` bytes from the byte `offset`.
void read_exactly(const Descriptor& file, const std::filesystem::path& path, uint64_t offset, void* to,
                  size_t size) {
  size_t got = 0;
  try {
    got = read_at(file, path, offset, {static_cast<char*>(to), size});
  } catch (const DataError& error) {
    throw CheckpointError(error.what());
  }
  if (got < size) fail(path, "it ends at byte {}; was it cut while it was read?", offset + got);
}

/// Nothing for a type that is not supported.
std::optional<torch::ScalarType> type_of(std::string_view dtype) {
  const auto at =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype& d) { return d.name == dtype; });
  return at == std::end(kDtypes) ? std::nullopt : std::optional(at->type);
}

size_t rank_of(torch::ScalarType type) {
  const auto at =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype& d) { return d.type == type; });
  return static_cast<size_t>(at - std::begin(kDtypes));
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : path_(path), file_(open_tensor_file(path)) {
  struct stat status{};
  if (::fstat(file_.get(), &status) != 0) fail(path, "its size is unknown");
  const auto file_size = static_cast<size_t>(status.st_size);
  if (file_size < 8) fail(path, "{} bytes are too few for a header", file_size);
  uint64_t header_size = 0;
  read_exactly(file_, path, 0, &header_size, 8);
  if (header_size > kMaxHeader) fail(path, "a header of {} bytes is too large", header_size);
  if (header_size > file_size - 8) {
    fail(path, "the header of {} bytes goes past the end of the file ({} bytes)", header_size, file_size);
  }
  data_offset_ = 8 + static_cast<size_t>(header_size);
  std::string header(static_cast<size_t>(header_size), '\0');
  read_exactly(file_, path, 8, header.data(), header.size());
  const uint64_t data_size = file_size - data_offset_;
  if (!header.starts_with('{')) fail(path, "the header does not begin with '{{'");

  // The parser would take a zero byte for the end and ignore the rest.
  if (const size_t zero = header.find('\0'); zero != header.npos) {
    fail(path, "the header is not valid JSON at byte {}", zero + 1);
  }
  HeaderParser parser;
  if (!nlohmann::json::sax_parse(header.begin(), header.end(), &parser)) fail(path, "{}", parser.problem);
  metadata_ = std::move(parser.metadata);

  for (auto& [name, raw] : parser.tensors) {
    const std::string shown = excerpt(name);
    if (!raw.dtype || !raw.shape || !raw.offsets)
      fail(path, "'{}' lacks dtype, shape or data_offsets", shown);
    const auto type = type_of(*raw.dtype);
    if (raw.offsets->size() != 2) fail(path, "data_offsets of '{}' are not two numbers", shown);
    const uint64_t begin = (*raw.offsets)[0], end = (*raw.offsets)[1];
    if (begin > end) fail(path, "'{}' begins at byte {}, after its end at byte {}", shown, begin, end);
    if (end > data_size) {
      fail(path, "'{}' ends at byte {} of the data, which has {} bytes; is the file truncated?", shown, end,
           data_size);
    }
    const auto size = size_in_bytes(*raw.shape, type ? c10::elementSize(*type) : 1);
    if (!size) fail(path, "the shape of '{}' overflows 64 bits", shown);
    // Numbers of an unknown type have at least one bit.
    if (!type && *size > 8 * (end - begin))
      fail(path, "'{}' has {} numbers by its shape, but {} bytes", shown, *size, end - begin);
    if (type && *size != end - begin) {
      fail(path, "'{}' takes {} bytes by dtype and shape, but {} by its offsets", shown, *size, end - begin);
    }
    entries_.emplace(name, Entry{*raw.dtype, std::vector<int64_t>(raw.shape->begin(), raw.shape->end()),
                                 static_cast<size_t>(begin), static_cast<size_t>(end)});
  }

  std::vector<std::pair<size_t, size_t>> ranges;
  for (const auto& [name, entry] : entries_) ranges.emplace_back(entry.begin, entry.end);
  std::sort(ranges.begin(), ranges.end());
  size_t covered = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin < covered) fail(path, "two tensors overlap at byte {} of the data", begin);
    if (begin > covered) fail(path, "bytes {} to {} of the data belong to no tensor", covered, begin);
    covered = end;
  }
  if (covered != data_size) fail(path, "bytes {} to {} of the data belong to no tensor", covered, data_size);
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> result;
  for (const auto& [name, entry] : entries_) result.push_back(name);
  return result;
}

int64_t n_elements(const TensorSource& source) {
  int64_t n = 0;
  for (const auto& name : source.names()) {
    const auto shape = source.shape(name);
    // The product of the other dimensions of an empty tensor may be beyond int64.
    if (std::ranges::find(shape, 0) == shape.end()) n += c10::multiply_integers(shape);
  }
  return n;
}

const SafetensorsFile::Entry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found != entries_.end()) return found->second;
  const auto near = nearest(name, names());
  throw CheckpointError(fmt::format("'{}' has no tensor '{}'{}", path_.string(), excerpt(name),
                                    near ? fmt::format("; did you mean '{}'?", *near) : ""));
}

torch::ScalarType SafetensorsFile::dtype(const std::string& name) const {
  const auto& stored = entry(name).dtype;
  if (const auto type = type_of(stored)) return *type;
  throw CheckpointError(fmt::format("'{}': the tensor '{}' has the dtype '{}', which is not one of {}",
                                    path_.string(), excerpt(name), excerpt(stored), kDtypeNames));
}

void SafetensorsFile::read_data(size_t begin, size_t size, void* to) const {
  read_exactly(file_, path_, data_offset_ + begin, to, size);
}

/// Reads piece by piece, so that a tensor that is converted is not in memory twice.
void SafetensorsFile::read_converted(const Entry& stored, torch::ScalarType type,
                                     const torch::Tensor& to) const {
  constexpr int64_t most_bytes = int64_t{16} << 20;
  const auto item = static_cast<int64_t>(c10::elementSize(type));
  const auto n = static_cast<int64_t>(stored.end - stored.begin) / item;
  auto flat = to.view({-1});
  for (int64_t begin = 0; begin < n; begin += most_bytes / item) {
    const int64_t count = std::min(n - begin, most_bytes / item);
    const auto piece = torch::empty({count}, torch::TensorOptions().dtype(type));
    read_data(stored.begin + static_cast<size_t>(begin * item), static_cast<size_t>(count * item),
              piece.data_ptr());
    flat.narrow(0, begin, count).copy_(piece);
  }
}

void SafetensorsFile::read_into(const torch::Tensor& to, const std::string& name) const {
  const Entry& stored = entry(name);
  const auto type = dtype(name);
  TORCH_CHECK(to.sizes() == stored.shape, name, " is read into a tensor of another shape");
  if (stored.begin == stored.end) return;
  if (type == torch::kBool) {
    // A bool that is neither 0 nor 1 must not exist.
    const auto bytes = torch::empty(stored.shape, torch::kUInt8);
    read_data(stored.begin, stored.end - stored.begin, bytes.data_ptr());
    if (!bytes.le(1).all().item<bool>())
      fail(path_, "'{}' has the dtype BOOL, but holds bytes other than 0 and 1", excerpt(name));
    torch::Tensor(to).copy_(bytes);
  } else if (to.is_cpu() && to.is_contiguous() && to.scalar_type() == type) {
    read_data(stored.begin, stored.end - stored.begin, to.data_ptr());
  } else if (to.is_contiguous()) {
    read_converted(stored, type, to);
  } else {
    torch::Tensor(to).copy_(tensor(name));
  }
}

namespace {

/// What the header says of a tensor.
struct HeaderEntry {
  std::string name;
  torch::ScalarType dtype;
  std::vector<int64_t> shape;

  size_t n_bytes() const {
    if (std::ranges::find(shape, 0) != shape.end()) return 0;
    return static_cast<size_t>(c10::multiply_integers(shape)) * c10::elementSize(dtype);
  }
};

/// Writes a file: the header, then the data of each entry, which `data` gives: on the CPU and contiguous.
void write_safetensors(const std::filesystem::path& path, std::vector<HeaderEntry> entries,
                       const StringMap& metadata,
                       const std::function<torch::Tensor(const std::string& name)>& data) {
  std::ranges::stable_sort(entries, {}, [](const HeaderEntry& entry) { return rank_of(entry.dtype); });
  std::string header = "{";
  if (!metadata.empty()) {
    std::string pairs;
    for (const auto& [key, value] : metadata) {
      pairs +=
          fmt::format("{}{}:{}", pairs.empty() ? "" : ",", quoted_json(key, path), quoted_json(value, path));
    }
    header += fmt::format("\"{}\":{{{}}}", kMetadataKey, pairs);
  }
  size_t offset = 0;
  for (const auto& entry : entries) {
    const size_t end = offset + entry.n_bytes();
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.size() > 1 ? "," : "", quoted_json(entry.name, path),
                          kDtypes[rank_of(entry.dtype)].name, fmt::join(entry.shape, ","), offset, end);
    offset = end;
  }
  header += '}';
  header.append((8 - header.size() % 8) % 8, ' ');
  if (header.size() > kMaxHeader) {
    throw CheckpointError(
        fmt::format("cannot write '{}': a header of {} bytes is too large", path.string(), header.size()));
  }

  const uint64_t header_size = header.size();
  OutputFile file(path, OutputFile::Mode::kReplace);
  file.write({reinterpret_cast<const char*>(&header_size), 8});
  file.write(header);
  for (const auto& entry : entries) {
    const auto plain = data(entry.name);
    file.write({static_cast<const char*>(plain.data_ptr()), plain.nbytes()});
  }
  file.sync();
  file.close();
}

}  // namespace

void save_safetensors(const std::filesystem::path& path, const TensorMap& tensors,
                      const StringMap& metadata) {
  std::vector<HeaderEntry> entries;
  for (const auto& [name, tensor] : tensors) {
    const bool writable = tensor.defined() && tensor.layout() == torch::kStrided &&
                          rank_of(tensor.scalar_type()) < std::size(kDtypes) && name != kMetadataKey;
    if (!writable) {
      throw CheckpointError(
          fmt::format("cannot write '{}': the tensor '{}' has a name, layout or dtype that the "
                      "safetensors format does not support (dtypes: {})",
                      path.string(), excerpt(name), kDtypeNames));
    }
    entries.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  }
  write_safetensors(path, std::move(entries), metadata, [&](const std::string& name) {
    return tensors.at(name).detach().resolve_conj().resolve_neg().to(torch::kCPU).contiguous();
  });
}

void copy_safetensors(const std::filesystem::path& path, const TensorSource& source,
                      const StringMap& metadata) {
  std::vector<HeaderEntry> entries;
  for (const auto& name : source.names()) entries.push_back({name, source.dtype(name), source.shape(name)});
  write_safetensors(path, std::move(entries), metadata,
                    [&](const std::string& name) { return source.tensor(name); });
}

}  // namespace zoo

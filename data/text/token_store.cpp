#include "data/text/token_store.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/error.h"
#include "io/files.h"
#include "io/sha256.h"

namespace zoo {
namespace {

/// The start of a cache file. It is followed by n_rows + 1 offsets of rows (uint64), then by the ids.
struct Header {
  char magic[8];
  uint64_t n_rows;
  uint64_t n_tokens;
  uint64_t bytes_per_id;  // 2 or 4
  uint64_t checksum;      // of everything after the header
  char key[64];           // hex digest of what the ids were made from
};
static_assert(sizeof(Header) % sizeof(uint64_t) == 0);
constexpr char magic[8] = {'Z', 'O', 'O', 'T', 'O', 'K', '1', '\n'};

/// A fast checksum against damage, not against manipulation.
uint64_t checksum(std::string_view bytes) {
  uint64_t sum = 0x9E3779B97F4A7C15ULL ^ bytes.size();
  for (size_t i = 0; i < bytes.size(); i += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, std::min<size_t>(8, bytes.size() - i));
    sum = (sum ^ word) * 0xFF51AFD7ED558CCDULL;
    sum ^= sum >> 32;
  }
  return sum;
}

uint64_t bytes_per_id(int64_t vocab_size) { return vocab_size <= 0x10000 ? 2 : 4; }

/// Hash of everything that the ids depend on.
std::string cache_key(const std::vector<std::string>& texts, const Tokenizer& tokenizer, RowEnding ending) {
  std::string digest;
  std::string buffer =
      fmt::format("{} {} {}\n", static_cast<int>(ending), texts.size(), tokenizer.fingerprint());
  for (const std::string& text : texts) {
    buffer += fmt::format("{}\n", text.size());
    buffer += text;
    if (buffer.size() < (1U << 20)) continue;
    digest = sha256(digest.append(buffer));
    buffer.clear();
  }
  return sha256(digest + buffer);
}

/// A file image: header, offsets, ids.
class Builder {
 public:
  explicit Builder(uint64_t width) : width_(width) {}

  void add(const TokenIds& ids) {
    const size_t old = ids_.size();
    ids_.resize(old + ids.size() * width_);
    char* out = ids_.data() + old;
    for (const int64_t id : ids) {
      if (id < 0 || id > static_cast<int64_t>(std::numeric_limits<uint32_t>::max() >> (32 - 8 * width_))) {
        throw std::out_of_range("a token id does not fit into the store");
      }
      const auto value = static_cast<uint32_t>(id);
      std::memcpy(out, &value, width_);  // little-endian: the low bytes
      out += width_;
    }
    offsets_.push_back(offsets_.back() + ids.size());
  }

  std::string finish(const std::string& key) const {
    std::string image(sizeof(Header), '\0');
    image.append(reinterpret_cast<const char*>(offsets_.data()), offsets_.size() * sizeof(uint64_t));
    image.append(ids_.data(), ids_.size());
    Header header{};
    std::memcpy(header.magic, magic, sizeof(magic));
    header.n_rows = offsets_.size() - 1;
    header.n_tokens = offsets_.back();
    header.bytes_per_id = width_;
    header.checksum = checksum(std::string_view(image).substr(sizeof(Header)));
    std::memcpy(header.key, key.data(), std::min(key.size(), sizeof(header.key)));
    std::memcpy(image.data(), &header, sizeof(Header));
    return image;
  }

 private:
  uint64_t width_;
  std::vector<uint64_t> offsets_ = {0};
  std::vector<char> ids_;
};

}  // namespace

struct TokenStore::Data {
  std::shared_ptr<const char> memory;
  std::span<const uint64_t> offsets;  // n_rows + 1
  const char* ids = nullptr;
  uint64_t width = 2;

  /// The parts of a file image, or null if it is damaged or has another key.
  static std::shared_ptr<const Data> parse(std::shared_ptr<const char> memory, size_t size,
                                           const std::string& key) {
    Header header{};
    if (size < sizeof(Header)) return nullptr;
    std::memcpy(&header, memory.get(), sizeof(Header));
    if (std::memcmp(header.magic, magic, sizeof(magic)) != 0) return nullptr;
    if (std::string_view(header.key, sizeof(header.key)).substr(0, key.size()) != key) return nullptr;
    if (header.bytes_per_id != 2 && header.bytes_per_id != 4) return nullptr;
    const uint64_t body = size - sizeof(Header);
    if (header.n_rows >= body / 8 || header.n_tokens > body / header.bytes_per_id) return nullptr;
    if (body != (header.n_rows + 1) * 8 + header.n_tokens * header.bytes_per_id) return nullptr;
    const char* const start = memory.get() + sizeof(Header);
    if (checksum({start, body}) != header.checksum) return nullptr;

    const auto data = std::make_shared<Data>();
    data->offsets = {reinterpret_cast<const uint64_t*>(start), header.n_rows + 1};
    data->ids = start + data->offsets.size_bytes();
    data->width = header.bytes_per_id;
    data->memory = std::move(memory);
    if (data->offsets.front() != 0 || data->offsets.back() != header.n_tokens) return nullptr;
    return std::ranges::is_sorted(data->offsets) ? data : nullptr;
  }

  static std::shared_ptr<const Data> in_memory(const std::string& image, const std::string& key) {
    const std::shared_ptr<char> copy(new char[image.size()], std::default_delete<char[]>());
    std::memcpy(copy.get(), image.data(), image.size());
    return parse(copy, image.size(), key);
  }

  static std::shared_ptr<const Data> from_file(const std::filesystem::path& path, const std::string& key) {
    if (!has_file(path)) return nullptr;
    try {
      const MappedFile file(path);
      return parse(file.data(), file.bytes().size(), key);
    } catch (const Error&) {
      return nullptr;  // unreadable: treated as missing
    }
  }
};

TokenStore TokenStore::from_rows(const std::vector<TokenIds>& rows) {
  Builder builder(4);
  for (const TokenIds& row : rows) builder.add(row);
  return TokenStore(Data::in_memory(builder.finish({}), {}));
}

int64_t TokenStore::n_rows() const { return data_ ? static_cast<int64_t>(data_->offsets.size()) - 1 : 0; }

int64_t TokenStore::n_tokens() const { return data_ ? static_cast<int64_t>(data_->offsets.back()) : 0; }

int64_t TokenStore::row_begin(int64_t row) const {
  if (row < 0 || row >= n_rows()) throw std::out_of_range("TokenStore has no such row");
  return static_cast<int64_t>(data_->offsets[static_cast<size_t>(row)]);
}

int64_t TokenStore::row_length(int64_t row) const {
  const int64_t begin = row_begin(row);
  return static_cast<int64_t>(data_->offsets[static_cast<size_t>(row) + 1]) - begin;
}

TokenIds TokenStore::row(int64_t row) const {
  const int64_t begin = row_begin(row);
  return slice(begin, begin + row_length(row));
}

TokenIds TokenStore::slice(int64_t begin, int64_t end) const {
  if (begin < 0 || begin > end || end > n_tokens()) throw std::out_of_range("TokenStore has no such tokens");
  TokenIds ids(static_cast<size_t>(end - begin));
  copy(begin, end, ids.data());
  return ids;
}

void TokenStore::copy(int64_t begin, int64_t end, int64_t* out) const {
  if (begin < 0 || begin > end || end > n_tokens()) throw std::out_of_range("TokenStore has no such tokens");
  if (begin == end) return;
  const auto widen = [&]<class Id>(Id) {
    const char* in = data_->ids + static_cast<size_t>(begin) * sizeof(Id);
    for (int64_t i = begin; i < end; ++i, in += sizeof(Id)) {
      Id id;
      std::memcpy(&id, in, sizeof(Id));
      *out++ = id;
    }
  };
  data_->width == 2 ? widen(uint16_t{}) : widen(uint32_t{});
}

std::filesystem::path cache_root() {
  const auto variable = [](const char* name) -> std::filesystem::path {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const auto path = variable("ZOO_CACHE"); !path.empty()) return path;
  if (const auto path = variable("XDG_CACHE_HOME"); !path.empty()) return path / "transformer-zoo";
  if (const auto path = variable("HOME"); !path.empty()) return path / ".cache" / "transformer-zoo";
  return {};
}

void encode_in_order(const std::vector<std::string>& texts, const Tokenizer& tokenizer,
                     const std::function<void(TokenIds ids)>& use) {
  constexpr size_t part_size = size_t{1} << 17, bytes_at_once = size_t{1} << 22;
  struct Part {
    std::string_view text;
    bool is_last = false;  // of its text
    TokenIds ids = {};
  };
  std::vector<Part> parts;
  size_t n_bytes = 0;
  TokenIds row;
  const auto finish = [&] {
    std::atomic<size_t> next = 0;
    const auto n_threads = std::min<int64_t>(std::ssize(parts), at::get_num_threads());
    at::parallel_for(0, n_threads, 1, [&](int64_t, int64_t) {
      for (size_t i = next++; i < parts.size(); i = next++) parts[i].ids = tokenizer.encode(parts[i].text);
    });
    for (Part& part : parts) {
      row.insert(row.end(), part.ids.begin(), part.ids.end());
      if (part.is_last) use(std::exchange(row, {}));
    }
    parts.clear();
    n_bytes = 0;
  };
  for (const std::string_view text : texts) {
    size_t begin = 0;
    do {
      const size_t end = tokenizer.part_end(text, begin, part_size);
      parts.push_back({.text = text.substr(begin, end - begin), .is_last = end == text.size()});
      n_bytes += end - begin;
      begin = end;
      if (n_bytes >= bytes_at_once) finish();
    } while (begin < text.size());
  }
  finish();
}

TokenStore tokenize(const std::vector<std::string>& texts, const Tokenizer& tokenizer, RowEnding ending) {
  const auto root = tokenizer.fingerprint().empty() ? std::filesystem::path() : cache_root();
  const std::string key = root.empty() ? std::string() : cache_key(texts, tokenizer, ending);
  const auto path = root / (key + ".tokens");
  if (!root.empty()) {
    if (auto data = TokenStore::Data::from_file(path, key)) return TokenStore(std::move(data));
  }

  Builder builder(bytes_per_id(tokenizer.vocab_size()));
  const int64_t eos = ending == RowEnding::end_of_sequence ? tokenizer.special().eos : -1;
  encode_in_order(texts, tokenizer, [&](TokenIds ids) {
    if (eos >= 0) ids.push_back(eos);
    builder.add(ids);
  });
  const std::string image = builder.finish(key);
  if (!root.empty()) {
    try {
      std::error_code ignored;  // a failure here shows again in the write
      std::filesystem::create_directories(root, ignored);
      write_file_atomically(path, image);
      if (auto data = TokenStore::Data::from_file(path, key)) return TokenStore(std::move(data));
    } catch (const Error&) {
      // A cache only saves time: without one the ids stay in memory.
    }
  }
  return TokenStore(TokenStore::Data::in_memory(image, key));
}

}  // namespace zoo

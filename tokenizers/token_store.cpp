#include "tokenizers/token_store.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "io/files.h"
#include "io/output_file.h"

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

/// A fast checksum against damage, not against manipulation. Bytes come in pieces.
class Checksum {
 public:
  explicit Checksum(uint64_t n_bytes) : sum_(0x9E3779B97F4A7C15ULL ^ n_bytes) {}
  void add(std::string_view bytes) {
    for (; n_pending_ > 0 && !bytes.empty(); bytes.remove_prefix(1)) push(bytes.front());
    for (; bytes.size() >= sizeof(uint64_t); bytes.remove_prefix(sizeof(uint64_t))) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data(), sizeof(word));
      mix(word);
    }
    for (const char byte : bytes) push(byte);
  }
  uint64_t finish() {
    if (n_pending_ > 0) mix(std::exchange(pending_, 0));
    n_pending_ = 0;
    return sum_;
  }

 private:
  void push(char byte) {
    pending_ |= uint64_t{static_cast<unsigned char>(byte)} << (8 * n_pending_);
    if (++n_pending_ < sizeof(uint64_t)) return;
    mix(std::exchange(pending_, 0));
    n_pending_ = 0;
  }
  void mix(uint64_t word) {
    sum_ = (sum_ ^ word) * 0xFF51AFD7ED558CCDULL;
    sum_ ^= sum_ >> 32;
  }

  uint64_t sum_, pending_ = 0;
  size_t n_pending_ = 0;  // bytes of an incomplete word
};

template <class T>
std::string_view bytes_of(std::span<const T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size_bytes()};
}

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
    Checksum sum(body);
    sum.add({start, body});
    if (sum.finish() != header.checksum) return nullptr;

    const auto data = std::make_shared<Data>();
    data->offsets = {reinterpret_cast<const uint64_t*>(start), header.n_rows + 1};
    data->ids = start + data->offsets.size_bytes();
    data->width = header.bytes_per_id;
    data->memory = std::move(memory);
    if (data->offsets.front() != 0 || data->offsets.back() != header.n_tokens) return nullptr;
    return std::ranges::is_sorted(data->offsets) ? data : nullptr;
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
  TokenStoreBuilder builder(std::numeric_limits<uint32_t>::max());
  for (const TokenIds& row : rows) builder.add(row);
  return builder.finish();
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

std::string_view TokenStore::stored_ids() const {
  return data_ ? std::string_view(data_->ids, data_->offsets.back() * data_->width) : std::string_view();
}

int64_t TokenStore::bytes_per_id() const { return data_ ? static_cast<int64_t>(data_->width) : 2; }

TokenStoreBuilder::TokenStoreBuilder(int64_t vocab_size) : width_(vocab_size <= 0x10000 ? 2 : 4) {}

void TokenStoreBuilder::add(const TokenIds& ids) {
  append(ids);
  end_row();
}

void TokenStoreBuilder::append(const TokenIds& ids) {
  const size_t old = ids_.size();
  ids_.resize(old + ids.size() * width_);
  char* out = ids_.data() + old;
  for (const int64_t id : ids) {
    if (id < 0 || id > static_cast<int64_t>(std::numeric_limits<uint32_t>::max() >> (32 - 8 * width_)))
      throw std::out_of_range("a token id does not fit into the store");
    const auto value = static_cast<uint32_t>(id);
    std::memcpy(out, &value, width_);  // little-endian: the low bytes
    out += width_;
  }
}

void TokenStoreBuilder::end_row() { offsets_.push_back(ids_.size() / width_); }

TokenStore TokenStoreBuilder::finish() {
  struct Owner {
    std::vector<uint64_t> offsets;
    std::vector<char> ids;
  };
  const auto owner = std::make_shared<Owner>();
  owner->offsets = std::exchange(offsets_, {0});
  owner->ids = std::exchange(ids_, {});
  const auto data = std::make_shared<TokenStore::Data>();
  data->offsets = owner->offsets;
  data->ids = owner->ids.data();
  data->width = width_;
  data->memory = std::shared_ptr<const char>(owner, owner->ids.data());
  return TokenStore(data);
}

std::optional<TokenStore> open_store(const std::filesystem::path& path, const std::string& key) {
  auto data = TokenStore::Data::from_file(path, key);
  return data ? std::optional(TokenStore(std::move(data))) : std::nullopt;
}

void write_store(const std::filesystem::path& path, const std::string& key,
                 const std::vector<TokenStore>& parts) {
  std::vector<uint64_t> offsets = {0};
  for (const auto& part : parts) {
    for (int64_t i = 0; i < part.n_rows(); ++i)
      offsets.push_back(offsets.back() + static_cast<uint64_t>(part.row_length(i)));
  }
  Header header{};
  std::memcpy(header.magic, magic, sizeof(magic));
  header.n_rows = offsets.size() - 1;
  header.n_tokens = offsets.back();
  header.bytes_per_id = static_cast<uint64_t>(parts.front().bytes_per_id());
  std::memcpy(header.key, key.data(), std::min(key.size(), sizeof(header.key)));
  std::vector<std::string_view> body = {bytes_of(std::span<const uint64_t>(offsets))};
  for (const auto& part : parts) body.push_back(part.stored_ids());
  Checksum sum(offsets.size() * sizeof(uint64_t) + header.n_tokens * header.bytes_per_id);
  for (const auto bytes : body) sum.add(bytes);
  header.checksum = sum.finish();
  body.insert(body.begin(), bytes_of(std::span<const Header>(&header, 1)));
  replace_file_atomically(path, [&](const std::filesystem::path& temporary) {
    OutputFile file(temporary, OutputFile::Mode::kCreate);
    for (const auto bytes : body) file.write(bytes);
    file.sync();
    file.close();
  });
}

}  // namespace zoo

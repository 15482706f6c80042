#pragma once
// A tokenised corpus as one memory-mapped array of ids.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/tokenizer.h"

namespace zoo {

/// Token ids of many rows (documents, sentences), one after the other. Cheap to copy: copies share the
/// memory. It is usually a mapped file with 2 bytes per token (4 if the vocabulary has more than 65,536
/// tokens).
class TokenStore {
 public:
  TokenStore() = default;
  /// A store in memory, without a file.
  static TokenStore from_rows(const std::vector<TokenIds>& rows);

  int64_t n_rows() const;
  int64_t n_tokens() const;
  int64_t row_length(int64_t row) const;
  /// Index of the first token of row `row` in the store.
  int64_t row_begin(int64_t row) const;
  TokenIds row(int64_t row) const;
  /// Tokens `begin` … `end` (excluded) of the store.
  TokenIds slice(int64_t begin, int64_t end) const;
  /// The bytes of the ids as they are stored, and how many bytes an id has.
  std::string_view stored_ids() const;
  int64_t bytes_per_id() const;
  /// Copies the same tokens into `out`, which has room for end - begin ids.
  void copy(int64_t begin, int64_t end, int64_t* out) const;

 private:
  friend class TokenStoreBuilder;
  friend std::optional<TokenStore> open_store(const std::filesystem::path& path, const std::string& key);
  struct Data;
  explicit TokenStore(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// Makes a store row by row, in memory.
class TokenStoreBuilder {
 public:
  explicit TokenStoreBuilder(int64_t vocab_size);
  /// A row. Throws std::out_of_range for an id that is not in the vocabulary's range.
  void add(const TokenIds& ids);
  /// A row in parts: appends to the row that end_row() ends. Throws likewise.
  void append(const TokenIds& ids);
  void end_row();
  /// The store of the rows since the last call.
  TokenStore finish();

 private:
  uint64_t width_;  // bytes of an id
  std::vector<uint64_t> offsets_ = {0};
  std::vector<char> ids_;
};

/// The store in a file that write_store() has written with this key; nothing if there is no such file, or if
/// it is damaged.
std::optional<TokenStore> open_store(const std::filesystem::path& path, const std::string& key);

/// Writes the rows of all `parts` (at least one, all of one vocabulary) to one file, atomically. Throws
/// SystemError.
void write_store(const std::filesystem::path& path, const std::string& key,
                 const std::vector<TokenStore>& parts);

}  // namespace zoo

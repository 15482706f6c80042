#pragma once
// A tokenised corpus as one memory-mapped array of ids, cached between runs.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"

namespace zoo {

/// What follows the tokens of each text.
enum class RowEnding {
  end_of_sequence,  // eos, if the vocabulary has one: documents of a stream
  bare              // nothing: sentences; the batches add special tokens
};

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
  /// Copies the same tokens into `out`, which has room for end - begin ids.
  void copy(int64_t begin, int64_t end, int64_t* out) const;

 private:
  friend TokenStore tokenize(const std::vector<std::string>& texts, const Tokenizer& tokenizer,
                             RowEnding ending);
  struct Data;
  explicit TokenStore(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// Calls `use` with the ids of each of the texts, in their order. LibTorch's threads encode them, long ones
/// in parts (Tokenizer::part_end), a few megabytes at a time. Throws DataError as Tokenizer::encode does.
void encode_in_order(const std::vector<std::string>& texts, const Tokenizer& tokenizer,
                     const std::function<void(TokenIds ids)>& use);

/// The ids of `texts`, one row for each text. They are cached in a file of cache_root() whose name is the
/// hash of tokenizer, ending and texts. A damaged file is replaced; if no file can be written, the ids stay
/// in memory. Throws DataError as Tokenizer::encode does.
TokenStore tokenize(const std::vector<std::string>& texts, const Tokenizer& tokenizer, RowEnding ending);

/// $ZOO_CACHE, else $XDG_CACHE_HOME/transformer-zoo, else ~/.cache/transformer-zoo; empty if none is set.
std::filesystem::path cache_root();

}  // namespace zoo

#pragma once
// A tokenised corpus as one memory-mapped array of ids, kept between runs.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"

namespace zoo {

/// What stands after the tokens of each text.
enum class RowEnding {
  end_of_sequence,  // eos, if the vocabulary has one: documents of a stream
  bare              // nothing: sentences, to which batches add what they need
};

/// Token ids of many rows (documents, sentences) end to end. Cheap to copy: copies share the memory, which is
/// mostly a mapped file with 2 bytes a token (4 where the vocabulary has more than 65,536 tokens).
class TokenStore {
 public:
  TokenStore() = default;
  /// The same in memory.
  static TokenStore from_rows(const std::vector<TokenIds>& rows);

  int64_t n_rows() const;
  int64_t n_tokens() const;
  int64_t row_length(int64_t row) const;
  /// Where row `row` begins in the whole.
  int64_t row_begin(int64_t row) const;
  TokenIds row(int64_t row) const;
  /// Tokens `begin` … `end` (excluded) of the whole.
  TokenIds slice(int64_t begin, int64_t end) const;
  /// The same into `out`, which has room for end - begin.
  void copy(int64_t begin, int64_t end, int64_t* out) const;

 private:
  friend TokenStore tokenize(const std::vector<std::string>& texts, const Tokenizer& tokenizer,
                             RowEnding ending);
  struct Data;
  explicit TokenStore(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// The rows of `texts` as ids. Kept in a file of cache_root() named by the hash of tokenizer, ending and
/// texts; a damaged file is made anew, and where none can be written the ids stay in memory. Throws DataError
/// as Tokenizer::encode does.
TokenStore tokenize(const std::vector<std::string>& texts, const Tokenizer& tokenizer, RowEnding ending);

/// $ZOO_CACHE, else $XDG_CACHE_HOME/transformer-zoo, else ~/.cache/transformer-zoo; empty where none of them
/// is set.
std::filesystem::path cache_root();

}  // namespace zoo

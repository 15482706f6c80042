#pragma once
// Texts to a store of token ids, by all threads, cached between runs.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/parallel_encoder.h"
#include "tokenizers/token_cache.h"
#include "tokenizers/token_store.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// What follows the tokens of each text.
enum class RowEnding {
  end_of_sequence,  // eos, if the vocabulary has one: documents of a stream
  bare              // nothing: sentences; the batches add special tokens
};

/// Calls `use` with the ids of each of the texts, in their order. LibTorch's threads encode them, long ones
/// in parts (Tokenizer::part_end), a few megabytes at a time. Throws DataError as Tokenizer::encode does.
void encode_in_order(const TextReader& texts, const Tokenizer& tokenizer,
                     const std::function<void(TokenIds ids)>& use);

struct TokenizeOptions {
  /// A part of about so many bytes of text is written when it is complete. An encoding that is stopped goes
  /// on after the last part.
  size_t part_bytes = size_t{64} << 20;
};

/// Texts to ids, one row for each text, as they are given one after the other.
///
/// The ids are cached in a file of cache_root() (tokenizers/token_cache.h) whose name is the hash of
/// tokenizer, ending and texts, with the parts of an unfinished one beside it. A damaged file is replaced; if
/// no file can be written, the ids stay in memory.
class Tokenization {
 public:
  /// `texts_hash` differs between texts. Empty: nothing is cached.
  Tokenization(std::string_view texts_hash, const Tokenizer& tokenizer, RowEnding ending,
               const TokenizeOptions& options = {});

  /// Whether the cache has all ids, so that texts need not be given.
  bool is_cached() const { return whole_.has_value(); }
  /// The next text. Throws DataError as Tokenizer::encode does.
  void add(std::string_view text);
  /// To be called once, after the last text. Throws likewise.
  TokenStore finish();

 private:
  void build(const TokenIds& ids, Follows follows);

  TokenizeOptions options_;
  int64_t vocab_size_, eos_;
  CachedStore cache_;
  std::optional<TokenStore> whole_;  // as the cache has it
  std::vector<TokenStore> parts_;
  int64_t n_written_ = 0;  // texts whose ids are in parts that an earlier process wrote
  TokenStoreBuilder builder_;
  ParallelEncoder encoder_;
  size_t part_bytes_ = 0;     // of text since the last part
  bool is_complete_ = false;  // nothing came after the last part
};

/// The same for all texts of `texts`, which is called twice and gives the same each time.
TokenStore tokenize(const TextReader& texts, const Tokenizer& tokenizer, RowEnding ending,
                    const TokenizeOptions& options = {});
TokenStore tokenize(const std::vector<std::string>& texts, const Tokenizer& tokenizer, RowEnding ending,
                    const TokenizeOptions& options = {});

/// Reads texts that are in memory, which must outlive the reader: all of the first list, then the next.
TextReader reader_of(std::vector<const std::vector<std::string>*> lists);

}  // namespace zoo

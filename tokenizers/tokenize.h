#pragma once
// Texts to a store of token ids, by all threads, cached between runs.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

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

/// The ids of `texts`, one row for each text; `texts` is called several times and gives the same each time.
/// The ids are cached in a file of cache_root() (tokenizers/token_cache.h) whose name is the hash of
/// tokenizer, ending and texts, with the parts of an unfinished one beside it. A damaged file is replaced; if
/// no file can be written, the ids stay in memory. Throws DataError as Tokenizer::encode does.
TokenStore tokenize(const TextReader& texts, const Tokenizer& tokenizer, RowEnding ending,
                    const TokenizeOptions& options = {});
TokenStore tokenize(const std::vector<std::string>& texts, const Tokenizer& tokenizer, RowEnding ending,
                    const TokenizeOptions& options = {});

/// Reads texts that are in memory, which must outlive the reader: all of the first list, then the next.
TextReader reader_of(std::vector<const std::vector<std::string>*> lists);

}  // namespace zoo

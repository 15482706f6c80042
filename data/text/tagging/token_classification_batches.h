#pragma once
// Batches of texts with classes at some of their tokens.

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_source.h"
#include "data/text/tokenizer.h"

namespace zoo {

/// The tokens of a text, without a frame, and the classes at some of them.
struct TokensWithClasses {
  TokenIds ids;
  std::vector<int64_t> positions;  // ascending indices into ids
  std::vector<int64_t> classes;    // 0 … C-1, as many
};

/// These rows in their frame as a batch; its targets are at the positions, row by row. `pad` is behind the
/// shorter rows, and models do not see it.
Batch token_classification_batch(const std::vector<const TokensWithClasses*>& rows, const TextFrame& frame,
                                 int64_t pad);

/// Batches of all rows. Each row has a class at least. Throws DataError if there are no rows.
std::unique_ptr<BatchSource> token_classification_batches(std::vector<TokensWithClasses> rows,
                                                          TextFrame frame, int64_t pad,
                                                          const BatchOptions& options);

}  // namespace zoo

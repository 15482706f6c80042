#pragma once
// Batches of texts with classes at some of their tokens.

#include <cstdint>
#include <memory>
#include <vector>

#include "data/batch_source.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// The tokens of a text, without a frame, and the classes at some of them.
struct TokensWithClasses {
  TokenIds ids;
  std::vector<int64_t> positions;  // ascending indices into ids
  std::vector<int64_t> classes;    // 0 … C-1, as many; none with `numbers`
  /// In place of classes: 0 or 1 for each label, or numbers to regress; C at each of the positions.
  std::vector<float> numbers = {};
};

/// These rows in their frame as a batch; its targets are at the positions, row by row. `pad` is behind the
/// shorter rows, and models do not see it.
Batch token_classification_batch(const std::vector<const TokensWithClasses*>& rows, const TextFrame& frame,
                                 int64_t pad);

/// Tokens that the model does not see in training: a share of them, other ones in each epoch.
struct HiddenTokens {
  double probability = 0;
  int64_t mask = -1;  // what stands in their place
};

/// Batches of all rows. Each row has a class at least. Tokens are hidden in shuffled order only. Throws
/// DataError if there are no rows, or if tokens are to be hidden and there is no mask.
std::unique_ptr<BatchSource> token_classification_batches(std::vector<TokensWithClasses> rows,
                                                          TextFrame frame, int64_t pad,
                                                          const BatchOptions& options,
                                                          const HiddenTokens& hidden = {});

}  // namespace zoo

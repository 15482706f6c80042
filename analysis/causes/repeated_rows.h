#pragma once
// One input as several rows of a batch, so that a pass reads it in several variants at once.

#include <cstdint>

#include "data/batch.h"

namespace zoo {

/// The batch with its only row `n` times.
Batch repeated_rows(const Batch& batch, int64_t n);

/// How many such rows a pass reads at once, so that its memory has a limit: they have `most_vectors` tokens
/// or patches, or there is one row.
int64_t rows_at_once(const Batch& batch, int64_t most_vectors);

}  // namespace zoo

#pragma once
// Sources of batches. A batch is a pure function of (seed, epoch, index), so a run that is killed and resumed
// reads exactly the same batches as an uninterrupted one. All tensors are int64 on the CPU.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/batch.h"

namespace zoo {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// The number of batches in epoch `epoch` (from 0); at least 1. It may differ between epochs.
  virtual int64_t n_batches(int64_t epoch) = 0;
  /// Batch `index` of epoch `epoch`. Equal arguments always give equal batches. Throws std::out_of_range. Not
  /// thread-safe, because the order of the newest epochs is cached.
  virtual Batch batch(int64_t epoch, int64_t index) = 0;
};

/// A position in the order of a source: the next batch to read.
struct BatchPosition {
  int64_t epoch = 0, index = 0;
};

/// Consecutive batches and their positions.
struct BatchSequence {
  std::vector<Batch> batches;
  std::vector<BatchPosition> positions;
};
/// Reads `count` batches from `position` on, and advances it.
BatchSequence next_batches(BatchSource& source, BatchPosition& position, int64_t count);

/// How examples become batches. Without bucketing, the order does not depend on the batch size: four batches
/// of 8 hold the examples of one batch of 32. In shuffled order, an incomplete last batch is left out unless
/// it is the only one; with batch_tokens no batch counts as incomplete. In sequential order it is kept, and
/// by_length has no effect.
struct BatchOptions {
  int64_t batch_size = 32;              // sequences
  std::optional<int64_t> batch_tokens;  // replaces it: most padded tokens on the longer side
  uint64_t seed = 0;
  enum class Order { shuffled, sequential } order = Order::shuffled;  // sequential for evaluation
  enum class Bucketing { by_length, none } bucketing = Bucketing::by_length;
};

}  // namespace zoo

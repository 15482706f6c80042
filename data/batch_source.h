#pragma once
// Batches in an order that is a pure function of (seed, epoch, index): a run that is killed and resumed sees
// exactly what it would have seen. All tensors are int64 on the CPU.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "models/batch.h"

namespace zoo {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// How many batches epoch `epoch` (from 0) has; at least 1. May differ between epochs.
  virtual int64_t n_batches(int64_t epoch) = 0;
  /// Batch `index` of epoch `epoch`. Same arguments, same batch, whatever was asked before. Throws
  /// std::out_of_range. One caller at a time: the order of the newest epochs is kept.
  virtual Batch batch(int64_t epoch, int64_t index) = 0;
};

/// A place in the order of a source: of the next batch to read.
struct BatchPosition {
  int64_t epoch = 0, index = 0;
};

/// Batches in a row, and where each was.
struct BatchSequence {
  std::vector<Batch> batches;
  std::vector<BatchPosition> positions;
};
/// The `count` batches from `position`, which moves on.
BatchSequence next_batches(BatchSource& source, BatchPosition& position, int64_t count);

/// How examples become batches. An order does not depend on the batch size where nothing is bucketed: four
/// batches of 8 hold the examples of one of 32. Shuffled, a last batch that is not full is left out unless it
/// is the only one (with batch_tokens there is no such thing as full); sequential, it is kept, and by_length
/// does nothing.
struct BatchOptions {
  int64_t batch_size = 32;              // sequences
  std::optional<int64_t> batch_tokens;  // instead: at most this many padded tokens on the longer side
  uint64_t seed = 0;
  enum class Order { shuffled, sequential } order = Order::shuffled;  // sequential for evaluation
  enum class Bucketing { by_length, none } bucketing = Bucketing::by_length;
};

}  // namespace zoo

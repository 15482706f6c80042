#pragma once
// Sources of batches. A batch is a pure function of (seed, epoch, index), so a run that is killed and resumed
// reads exactly the same batches as an uninterrupted one. All tensors are on the CPU.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

#include "data/batch.h"

namespace zoo {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// The number of batches in epoch `epoch` (from 0); at least 1. It may differ between epochs.
  virtual int64_t n_batches(int64_t epoch) = 0;
  /// Batch `index` of epoch `epoch`. Equal arguments always give equal batches. Throws std::out_of_range. Not
  /// thread-safe, because the order of the newest epochs is cached.
  virtual Batch batch(int64_t epoch, int64_t index) = 0;
  /// Says which batch will be asked for next, so that a source may make it in the meantime (data/prefetch.h).
  virtual void expect([[maybe_unused]] int64_t epoch, [[maybe_unused]] int64_t index) {}
  /// Says that this process uses only its share of the rows of each batch, part `index` of at most `n_parts`
  /// (rows_of_part). A source may then leave out what is costly of the other rows, such as the decoding of
  /// pictures. Targets and counts stay those of the whole batch.
  virtual void use_share([[maybe_unused]] int64_t index, [[maybe_unused]] int64_t n_parts) {}
};

/// A position in the order of a source: the next batch to read.
struct BatchPosition {
  int64_t epoch = 0, index = 0;
};

/// The batches of one optimiser step. Only the first ones stay in memory, up to kKeptBytes; the others are
/// read each time that they are needed, because a step may accumulate the gradients of any number of batches.
class BatchSequence {
 public:
  static constexpr int64_t kKeptBytes = int64_t{512} << 20;

  /// Batches in memory, without positions.
  BatchSequence(std::vector<Batch> batches);
  BatchSequence(std::initializer_list<Batch> batches) : BatchSequence(std::vector<Batch>(batches)) {}
  /// Batches of `source`, which outlives this object. `kept_bytes` of them stay in memory, but at least one
  /// batch.
  BatchSequence(BatchSource& source, std::vector<BatchPosition> positions, int64_t kept_bytes = kKeptBytes);

  size_t size() const { return source_ ? positions_.size() : kept_.size(); }
  Batch operator[](size_t i) const;
  /// All of them in memory.
  std::vector<Batch> all() const;
  const std::vector<BatchPosition>& positions() const { return positions_; }

 private:
  BatchSource* source_ = nullptr;
  std::vector<BatchPosition> positions_;
  std::vector<Batch> kept_;
};

/// The `count` batches from `position` on; advances it. `source` may already make the batch after them.
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

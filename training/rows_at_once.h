#pragma once
// How many rows of a batch go through a model at once: as many as memory allows (training.batch_size: auto).

#include <cstdint>
#include <functional>
#include <optional>

#include <c10/core/Device.h>

#include "training/gradients/gradient_accumulator.h"
#include "training/tasks/task.h"

namespace zoo {

/// The memory that a forward and a backward pass take, as a function of the rows: measured for a few, and
/// beyond these a straight line.
class RowMemory {
 public:
  /// Measures `peak_of`, the bytes for a number of rows, at 1, 2, 4 … rows until they are `straight_from`, or
  /// all `n_rows` that there are, or twice as many might take more than `limit` bytes.
  RowMemory(const std::function<int64_t(int64_t n_rows)>& peak_of, int64_t n_rows, int64_t straight_from,
            int64_t limit);

  /// Of a single row.
  int64_t bytes_of_one() const { return one_.bytes; }
  /// Most rows that take no more than `limit` bytes; 0 where a single one takes more.
  int64_t rows_within(int64_t limit) const;

 private:
  struct Point {
    int64_t rows = 0, bytes = 0;
  };
  Point one_, before_, last_;
};

struct RowsAtOnceOptions {
  c10::Device device = c10::kCPU;
  /// Bytes that may be used. By default what the machine has left for a model on the CPU (all rows go through
  /// at once where it does not tell), and on a GPU what turns out to fit.
  std::optional<int64_t> memory_bytes = std::nullopt;
  /// Processes that share this memory, and that share the rows of a batch.
  int64_t n_sharing = 1, n_processes = 1;
  /// What an earlier part of the run worked with; 0 = there is none. It is kept if it still fits, because
  /// another number would round differently.
  int64_t before = 0;
};

/// Takes rows of a real batch, the largest that comes soon, through the model and back, and keeps nothing of
/// it. The optimiser must have its state already. Throws TrainingError where not even one row fits.
int64_t find_rows_at_once(const GradientAccumulator& gradients, Task& task, const RowsAtOnceOptions& options);

/// The batch of the first epoch, or of its beginning if it is long, that takes the most computation, and so
/// memory.
int64_t costliest_batch(Task& task);

}  // namespace zoo

#pragma once
// Finds how many rows of a batch can go through a model at once (training.batch_size: auto).

#include <cstdint>
#include <functional>
#include <optional>

#include <c10/core/Device.h>

#include "tasks/task.h"
#include "training/gradient_accumulator.h"

namespace zoo {

/// The memory that a forward and a backward pass take, as a function of the number of rows: measured for a
/// few rows, a straight line beyond.
class RowMemory {
 public:
  /// Measures `peak_of`, the bytes for a number of rows, at 1, 2, 4 … rows. Stops at `straight_from` rows, at
  /// all `n_rows`, or when twice as many rows might take more than `limit` bytes.
  RowMemory(const std::function<int64_t(int64_t n_rows)>& peak_of, int64_t n_rows, int64_t straight_from,
            int64_t limit);

  /// The bytes for a single row.
  int64_t bytes_of_one() const { return one_.bytes; }
  /// The most rows that take at most `limit` bytes; 0 if a single row takes more.
  int64_t rows_within(int64_t limit) const;

 private:
  struct Point {
    int64_t rows = 0, bytes = 0;
  };
  Point one_, before_, last_;
};

struct MicroBatchOptions {
  c10::Device device = c10::kCPU;
  /// Bytes that may be used. Default for a model on the CPU: the machine's free memory; if that is unknown,
  /// all rows go through at once. Default on a GPU: trials show what fits.
  std::optional<int64_t> memory_bytes = std::nullopt;
  /// Number of processes that share this memory, and number of processes that share the rows of a batch.
  int64_t n_sharing = 1, n_processes = 1;
  /// The number of rows in an earlier part of the run; 0 = there is none. It is kept if it still fits,
  /// because another number would round differently.
  int64_t before = 0;
};

/// Takes rows of costliest_batch() through the model and back, and keeps no result. The optimiser must have
/// its state already. Throws TrainingError if not even one row fits.
int64_t find_micro_batch_size(const GradientAccumulator& gradients, Task& task,
                              const MicroBatchOptions& options);

/// The batch that takes the most computation, and therefore memory, in the first epoch, or in its beginning
/// if it is long.
int64_t costliest_batch(Task& task);

}  // namespace zoo

#include "training/micro_batch_size.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/types.h>

#include "base/machine.h"
#include "base/random.h"
#include "base/random_state.h"
#include "base/tensor_memory.h"
#include "models/families/model_cost.h"

namespace zoo {
namespace {

// Fractions of the free memory that tensors may take, which is all that is measured. The rest is for buffers
// of matrix products, for gaps between tensors and for other programs. A run that is resumed may take a
// little more for the number of rows that it began with.
constexpr double kShare = 0.8, kShareOfBefore = 0.9;

double gigabytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

/// Halves the number of rows until they fit.
int64_t rows_by_trial(const std::function<void(int64_t n_rows)>& rehearse, c10::Device device,
                      int64_t n_rows) {
  for (;; n_rows = (n_rows + 1) / 2) {
    try {
      rehearse(n_rows);
      return n_rows;
    } catch (const c10::OutOfMemoryError&) {
      if (n_rows == 1) fail_out_of_memory();
    }
    free_cached_memory(device);
  }
}

}  // namespace

RowMemory::RowMemory(const std::function<int64_t(int64_t)>& peak_of, int64_t n_rows, int64_t straight_from,
                     int64_t limit)
    : one_{1, std::max<int64_t>(peak_of(1), 1)}, last_(one_) {
  while (last_.rows < std::min(n_rows, straight_from) && 2 * last_.bytes <= limit) {
    before_ = last_;
    last_.rows = std::min(2 * last_.rows, n_rows);
    last_.bytes = peak_of(last_.rows);
  }
}

int64_t RowMemory::rows_within(int64_t limit) const {
  if (one_.bytes > limit) return 0;
  const int64_t per_row = std::max<int64_t>(
      (last_.bytes - before_.bytes + last_.rows - before_.rows - 1) / (last_.rows - before_.rows), 1);
  const int64_t room = limit - last_.bytes;
  const int64_t more = room >= 0 ? room / per_row : -((-room + per_row - 1) / per_row);
  return std::max<int64_t>(last_.rows + more, 1);
}

int64_t find_micro_batch_size(const GradientAccumulator& gradients, Task& task,
                              const MicroBatchOptions& options) {
  const auto batch = task.batches(Split::train).batch(0, costliest_batch(task));
  const int64_t n_rows = (batch.n_rows() + options.n_processes - 1) / options.n_processes;  // of this process
  const RandomStateScope unchanged(options.device, {});
  const auto rehearse = [&](int64_t n) {
    const RandomScope random({0});
    gradients.rehearse(take_rows(batch, 0, n));
  };
  const int64_t before = std::min(options.before > 0 ? options.before : n_rows, n_rows);
  if (!options.device.is_cpu() && !options.memory_bytes) {
    const auto with_gradients = [&](int64_t n) {
      // During the pass of the last rows the gradients of the earlier rows take memory, too.
      const auto others =
          torch::empty({gradients.bytes()}, torch::dtype(torch::kUInt8).device(options.device));
      rehearse(n);
    };
    return rows_by_trial(with_gradients, options.device, before);
  }

  const auto available = options.memory_bytes ? options.memory_bytes : available_memory_bytes();
  if (!available) return before;
  // During the pass of the last rows the gradients of the earlier rows take memory, too.
  const int64_t mine = *available / options.n_sharing;
  const auto limit = [&](double share) {
    return static_cast<int64_t>(share * static_cast<double>(mine)) - gradients.bytes();
  };
  const auto peak_of = [&](int64_t n) {
    const TensorMemory memory(options.device);
    rehearse(n);
    return memory.peak();
  };
  // With fewer rows some threads are idle, and their gradients take no memory.
  const int64_t straight_from = std::max<int64_t>(int64_t{2} * at::get_num_threads(), 4);
  const RowMemory memory(peak_of, n_rows, straight_from, limit(kShare));
  const int64_t fits = std::min(memory.rows_within(limit(kShare)), n_rows);
  const int64_t allowed = std::min(memory.rows_within(limit(kShareOfBefore)), n_rows);
  if (allowed == 0) {
    fail_out_of_memory(fmt::format(" (it takes {:.3g} GiB of {:.3g} that are free)",
                                   gigabytes(memory.bytes_of_one() + gradients.bytes()), gigabytes(mine)));
  }
  return options.before > 0 && before <= allowed ? before : std::max<int64_t>(fits, 1);
}

int64_t costliest_batch(Task& task) {
  constexpr int64_t kMostBatches = 1000, kMostRows = 32000;
  auto& source = task.batches(Split::train);
  int64_t costliest = 0, rows = 0;
  double most = 0;
  for (int64_t i = 0; i < std::min(source.n_batches(0), kMostBatches) && rows < kMostRows; ++i) {
    const auto shape = pass_shape(source.batch(0, i));
    rows += shape.batch_size;
    const double flops = forward_flops(task.experiment().model, task.purpose(), shape);
    if (flops <= most) continue;
    most = flops;
    costliest = i;
  }
  return costliest;
}

}  // namespace zoo

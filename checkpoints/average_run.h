#pragma once
// A new run from the mean of the last checkpoints of an old run.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace zoo {

struct AverageOptions {
  std::filesystem::path out;    // directory of the new run; default RUN-average
  std::optional<int64_t> last;  // number of the newest checkpoints to average; default all
  c10::Device device = c10::kCPU;
  std::function<void(const std::string& line)> on_message = nullptr;  // before each part of the work
};

struct AveragedRun {
  std::filesystem::path run_dir;  // for Run::open()
  std::vector<int64_t> steps;     // of the checkpoints, the newest first
  double loss_before = 0;         // validation loss of the old run
  double loss = 0;                // validation loss of the new run
};

/// Averages the trained weights of the newest checkpoints of `run_dir` (Vaswani et al. 2017, section 6.1),
/// and writes a run with the mean and the old run's configuration and vocabulary. The old run does not
/// change. Throws CheckpointError (no run, fewer than two checkpoints, weights of different architectures),
/// UsageError (`out` exists, `last` is below 2 or more than the run has), DataError, SystemError.
AveragedRun average_run(const std::filesystem::path& run_dir, const AverageOptions& options = {});

}  // namespace zoo

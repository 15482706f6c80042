#pragma once
// A new run from the mean of an old one's last checkpoints.

#include <filesystem>
#include <optional>
#include <vector>

#include <c10/core/Device.h>

namespace zoo {

struct AverageOptions {
  std::filesystem::path out;    // directory of the new run; default RUN-average
  std::optional<int64_t> last;  // how many checkpoints, the newest ones; default all there are
  c10::Device device = c10::kCPU;
};

struct AveragedRun {
  std::filesystem::path run_dir;  // what Run::open takes
  std::vector<int64_t> steps;     // of the checkpoints, the newest first
  double loss_before = 0;         // of the old run on its validation data
  double loss = 0;                // of the new one
};

/// Averages the weights of the newest checkpoints of `run_dir` (Vaswani et al. 2017, section 6.1), as they
/// were trained, and writes a run with these weights and the old one's configuration and vocabulary. The old
/// one stays as it is. Throws CheckpointError (no run, fewer checkpoints, weights of different
/// architectures), UsageError (`out` exists), DataError, SystemError.
AveragedRun average_run(const std::filesystem::path& run_dir, const AverageOptions& options = {});

}  // namespace zoo

#pragma once
// Training: one loop for every task and every architecture.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "training/parallel/process_group.h"
#include "training/runs/run_directory.h"
#include "training/tasks/experiment.h"

namespace zoo {

/// How far a training has come.
struct TrainProgress {
  int64_t step = 0, steps = 0;
  std::string status;   // short, such as "loss 1.92  12.3 k tokens/s"
  std::string message;  // a line worth keeping; mostly empty
};

struct TrainOptions {
  std::filesystem::path run_dir;  // default runs/NAME
  ExistingRun existing = ExistingRun::refuse;
  c10::Device device = c10::kCPU;
  /// One process of several that train this model together; each calls train() with the same experiment. They
  /// see the same run directory and the same data. The first writes and reports.
  std::optional<ProcessPlace> place = std::nullopt;
  std::function<void(const TrainProgress&)> on_progress = nullptr;  // called at each step
  /// What training.batch_size: auto may use of the device's memory, in bytes; by default all that is left,
  /// but for a reserve.
  std::optional<int64_t> memory_bytes = std::nullopt;
  std::function<bool()> should_stop = nullptr;  // asked after each step: save and return?
};

/// Why a training ended.
enum class TrainEnd { all_steps, out_of_time, interrupted };

struct TrainResult {
  std::filesystem::path run_dir;  // what Run::open takes
  TrainEnd end = TrainEnd::all_steps;
  int64_t step = 0;
  std::optional<double> best_score;  // training.best_by of the best weights, on the validation data
  int64_t best_step = 0;
  double seconds = 0;  // of training, over all its parts
};

/// Trains and leaves a run directory. A run that was stopped, or killed at any moment, goes on with
/// ExistingRun::resume exactly as if it had not been: weights, metrics and samples are the same to the last
/// bit (on the CPU, with equally many threads). Throws UsageError (the run exists), ConfigError (also:
/// resumed with another model or other data), DataError, CheckpointError, SystemError (e.g. disk full; what
/// was saved before stays), TrainingError (the loss is not a number), PeerError (another process has failed).
///
/// Several processes take each a share of the rows of every batch, so what is trained does not depend on how
/// many they are, but for rounding and the elements that dropout takes; a run may be resumed by more or
/// fewer.
TrainResult train(const Experiment& experiment, const TrainOptions& options = {});

/// Shows progress on stderr; for TrainOptions::on_progress.
std::function<void(const TrainProgress&)> progress_on_stderr(std::string_view title);

}  // namespace zoo

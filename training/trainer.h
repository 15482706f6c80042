#pragma once
// Training: one loop for every task and every architecture.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "checkpoints/fork.h"
#include "checkpoints/run_directory.h"
#include "parallel/process_group.h"
#include "tasks/experiment.h"

namespace zoo {

/// The progress of a training.
struct TrainProgress {
  int64_t step = 0, steps = 0;
  double seconds = 0;                 // spent on the training so far, over all parts of the run
  std::optional<double> max_seconds;  // training.max_seconds: it ends then, even before the last step
  std::string status;                 // short, such as "loss 1.92  12.3 k tokens/s  20.8 ms/step"
  std::string message;                // a line to keep; empty: a step was made
  /// The newest values by their names in metrics.jsonl, such as train_loss, lr and valid_loss.
  Metrics metrics = {};
};

struct TrainOptions {
  std::filesystem::path run_dir = {};  // default runs/NAME
  ExistingRun existing = ExistingRun::refuse;
  /// The new run goes on with a copy of another one as it was at a step. Until then both are the same to the
  /// last bit. Where the other run has found better weights since, the best ones are found from this step on.
  std::optional<ForkPoint> from = std::nullopt;
  c10::Device device = c10::kCPU;
  /// The place of this process, if several train this model together. Each of them calls train() with the
  /// same experiment, and has access to the same run directory and the same data. The first process writes
  /// and reports.
  std::optional<ProcessPlace> place = std::nullopt;
  /// Called once for each step, without a message, and for each message, such as that of an evaluation.
  std::function<void(const TrainProgress&)> on_progress = nullptr;
  /// The bytes of the device's memory that training.batch_size: auto may use; by default all free memory
  /// except a reserve.
  std::optional<int64_t> memory_bytes = std::nullopt;
  /// Called before the first step and in each step; once it returns true, train() saves after the step and
  /// returns.
  std::function<bool()> should_stop = nullptr;
};

/// Why a training has ended.
enum class TrainEnd { all_steps, out_of_time, out_of_patience, interrupted };

struct TrainResult {
  std::filesystem::path run_dir = {};  // for Run::open()
  TrainEnd end = TrainEnd::all_steps;
  int64_t step = 0;
  /// training.kept_metric() of the kept weights on the validation data.
  std::optional<double> best_score;
  int64_t best_step = 0;
  double seconds = 0;  // duration of the training, summed over all parts of the run
};

/// Trains and leaves a run directory. A run that was stopped, or killed at any moment, goes on with
/// ExistingRun::resume as if it had not been interrupted: weights, metrics and samples are the same to the
/// last bit (on the CPU, with the same number of threads). Throws UsageError (the run exists), ConfigError
/// (also if a run goes on with another model, with other data, or with fewer steps than it has made),
/// DataError, CheckpointError, SystemError (e.g. the disk is full; everything that was saved before stays),
/// TrainingError (the loss is not a number), PeerError (another process has failed).
///
/// Each of several processes takes a share of the rows of every batch. Therefore the result does not depend
/// on the number of processes, except for rounding and the elements that dropout drops. More or fewer
/// processes may resume a run.
TrainResult train(const Experiment& experiment, const TrainOptions& options = {});

/// A function for TrainOptions::on_progress that shows progress on stderr.
std::function<void(const TrainProgress&)> progress_on_stderr(std::string_view title);

}  // namespace zoo

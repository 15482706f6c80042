#pragma once
// A training while it runs: what its parts (open_run.h, take_step.h, validate.h, save_run.h) share.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "base/tensor_memory.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/initial_weights.h"
#include "checkpoints/run_directory.h"
#include "io/metrics_log.h"
#include "parallel/process_group.h"
#include "tasks/experiment.h"
#include "tasks/task.h"
#include "tasks/training_observer.h"
#include "training/learner.h"
#include "training/trainer.h"

namespace zoo {

/// The steps since the last row of metrics.
struct StepsSinceLog {
  double seconds = 0;         // duration of the steps
  int64_t steps = 0;          // their number
  int64_t tokens_before = 0;  // that had been read before them
};

/// What a row of metrics says of a step.
struct StepResult {
  double lr = 0, grad_norm = 0;
};

/// A step that is taken, but whose numbers have not been read.
struct UnreadStep {
  Learner::LateGradients gradients;
  int64_t step;  // from 1
  double lr;
  std::vector<BatchPosition> positions;  // of its batches
};

struct TrainingRun {
  TrainingRun(const Experiment& experiment, const TrainOptions& options);

  /// The checkpoint that the first process begins with, if there is one, and the run that has it.
  std::optional<std::filesystem::path> first_checkpoint() const;
  const std::filesystem::path& origin() const { return fork ? fork->run() : dir; }

  const TrainingConfig& config() const { return experiment.training; }
  bool is_first() const { return processes.is_first(); }

  /// Does `work` in the first process, and then in the others, which read what it has written into the
  /// directory. All processes fail together. Collective.
  void first_before_others(const std::function<void()>& work);
  /// Sums numbers over the processes, and updates stop_wanted and time_used. Collective.
  std::vector<double> agree(const std::vector<double>& sums = {});
  /// Sums numbers over the processes. Collective.
  std::vector<double> sum(std::vector<double> numbers) const;

  /// Whether something that is done every so many steps is done after this one.
  bool due(int64_t every) const { return state.step % every == 0; }
  std::optional<TrainEnd> why_to_end() const;
  /// Before the first step there is no best one. While an evaluation is due, it must come first.
  bool is_out_of_patience() const {
    return state.best_score && config().is_out_of_patience(state.step, state.best_step);
  }

  /// Writes a row of metrics.jsonl, if this process has it, and keeps it for report().
  void record(const Metrics& row);

  /// Measures the training from now on.
  void start_clock() { watch = {}; }
  /// The duration of the training, with earlier parts of this run.
  double seconds() const { return seconds_before + watch.seconds(); }
  /// Tells TrainOptions::on_progress, in the first process.
  void report(std::string message = {}) const;
  TrainResult result(TrainEnd end) const;

  Experiment experiment;
  TrainOptions options;
  std::filesystem::path dir;
  ProcessGroup processes;
  TensorMemory memory;                      // before the first tensor
  std::unique_ptr<RunDirectory> directory;  // null in all processes but the first, like metrics
  std::optional<Fork> fork;                 // what the first process goes on with in place of its own run
  std::optional<InitialModel> source;       // what init_from names, until its weights are taken
  std::unique_ptr<Task> task;
  std::unique_ptr<Learner> learner;
  std::unique_ptr<MetricsLog> metrics;
  std::vector<std::unique_ptr<TrainingObserver>> observers;  // none in all processes but the first
  Metrics observed;                                          // of the last step that is logged
  TrainingState state;
  std::optional<UnreadStep> unread;
  StepResult last_step;
  std::string base;  // with adapters: the hash of RUN/base.safetensors, in the first process

  // Equal in all processes, though only one of them knows the value.
  bool stop_wanted = false;  // some process was asked to stop
  double time_used = 0;      // fraction of max_seconds, by the clock of the first process

  double valid_loss = 0;  // of the last evaluation
  Stopwatch watch;
  double seconds_before = 0;  // duration of earlier parts of this run
  StepsSinceLog since_log;
  int64_t step_bytes = -1;  // bytes that this process exchanged with the others in the last step
  std::string status;       // TrainProgress::status
  Metrics newest;           // TrainProgress::metrics
};

}  // namespace zoo

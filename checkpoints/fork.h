#pragma once
// A training that leaves another one at a checkpoint.

#include <cstdint>
#include <filesystem>

#include "checkpoints/checkpoint.h"
#include "tasks/experiment.h"

namespace zoo {

/// Where a training leaves another one.
struct ForkPoint {
  std::filesystem::path run;
  int64_t step = 0;  // it has a checkpoint of this step
};

/// A run as it was at one of its checkpoints. The training that goes on with it, with the configuration
/// `wanted`, has the same bits until that step; what differs later comes from the keys that differ.
class Fork {
 public:
  /// `to` is the directory of the new run. Changes nothing. Throws UsageError if there is no such checkpoint,
  /// or if `to` is, holds or lies in the run, ConfigError if `wanted` has another value of a key that a
  /// resumed run must not change, CheckpointError if the run is none, or damaged.
  Fork(const ForkPoint& point, const Experiment& wanted, const std::filesystem::path& to);

  const std::filesystem::path& run() const { return run_; }
  const std::filesystem::path& checkpoint() const { return checkpoint_; }
  /// Copies into the new run what was logged, the checkpoint, and the best weights if they are not newer.
  /// Throws CheckpointError if a part of the run is a link, SystemError.
  void copy_to(const std::filesystem::path& to) const;
  /// Makes lacks_best() true of the checkpoint's state if its best weights have been replaced since.
  void forget_lost_best(TrainingState& state) const;

 private:
  std::filesystem::path run_, checkpoint_;
  bool has_best_;
};

/// Whether a fork has no best weights, because its parent has found better ones since: then the weights that
/// it begins with are evaluated.
bool lacks_best(const TrainingState& state);

}  // namespace zoo

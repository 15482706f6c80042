#pragma once
// Turns a budget into a number of steps.

#include <cstdint>

#include "comparison/planning/comparison_config.h"
#include "tasks/task.h"

namespace zoo {

/// The amounts that a training reads and computes.
struct Consumption {
  int64_t steps = 0;
  int64_t tokens = 0;
  double flops = 0;  // of forward and backward passes, as the trainer counts them
};

/// The consumption of the first `steps` steps of a training, counted over its actual batches.
Consumption consumption(const Experiment& experiment, Task& task, int64_t steps);

/// The number of steps, at least one, that comes nearest to a budget of steps, tokens or FLOPs, and their
/// consumption. Throws UsageError for a budget of seconds: only the training itself shows its number of
/// steps.
Consumption steps_within(const Experiment& experiment, Task& task, const Budget& budget);

}  // namespace zoo

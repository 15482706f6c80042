#pragma once
// From a budget to a number of steps.

#include <cstdint>

#include "comparison/comparison_config.h"
#include "training/tasks/task.h"

namespace zoo {

/// What a training reads and computes.
struct Consumption {
  int64_t steps = 0;
  int64_t tokens = 0;
  double flops = 0;  // of forward and backward passes, as the trainer counts them
};

/// What the first `steps` steps of a training consume. Looks at the very batches.
Consumption consumption(const Experiment& experiment, Task& task, int64_t steps);

/// The number of steps, at least one, that comes nearest to a budget of steps, tokens or FLOPs, and what they
/// consume. Throws UsageError for a budget of seconds, which only the clock can tell.
Consumption steps_within(const Experiment& experiment, Task& task, const Budget& budget);

}  // namespace zoo

#pragma once
// `training.epochs`: a number of steps that depends on the data.

#include "tasks/experiment.h"
#include "tasks/task.h"

namespace zoo {

/// Replaces training.epochs, if that is set, by training.steps: all batches of these epochs, of which
/// training.gradient_accumulation make one step. `task` is the experiment's. Throws ConfigError if a
/// key does not fit this number of steps.
void resolve_epochs(Experiment& experiment, Task& task);

}  // namespace zoo

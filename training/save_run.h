#pragma once
// Checkpoints of a training.

#include "training/training_run.h"

namespace zoo {

/// Writes a checkpoint, from which the run goes on as if it had not been interrupted. If it cannot be
/// written, all processes end. Throws TrainingError if a tensor is not finite. Collective.
void save(TrainingRun& run);

}  // namespace zoo

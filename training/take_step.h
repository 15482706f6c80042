#pragma once
// One step of a training.

#include "training/training_run.h"

namespace zoo {

/// Makes the gradients of the next batches and takes a step of the optimiser. Random numbers of a step are a
/// function of training.seed, the step, and, where LibTorch's generators give them, the process, so that
/// there is no state of a generator to keep. Throws TrainingError for a loss or a gradient that is not a
/// number: on the CPU before a step that would ruin the weights. A GPU goes on while the host reads the
/// numbers of the step before, so there the error comes a step late, but before anything is written.
/// Collective.
void take_step(TrainingRun& run);

/// Waits for the numbers of the last step, if they have not been read: TrainingRun::last_step and the state
/// then count it. To be called before anything is written of the training. Collective.
void read_last_step(TrainingRun& run);

}  // namespace zoo

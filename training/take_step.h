#pragma once
// One step of a training.

#include "training/training_run.h"

namespace zoo {

struct StepResult {
  double loss;  // sum over the batches of the step and the processes
  double lr, grad_norm;
};

/// Makes the gradients of the next batches and takes a step of the optimiser. Random numbers of a step are a
/// function of training.seed, the step, and, where LibTorch's generators give them, the process, so that
/// there is no state of a generator to keep. Throws TrainingError before a step that would ruin the weights:
/// a loss or a gradient is not a number. Collective.
StepResult take_step(TrainingRun& run);

}  // namespace zoo

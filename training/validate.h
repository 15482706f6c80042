#pragma once
// The evaluations of a training, and the weights that it keeps.

#include "training/training_run.h"

namespace zoo {

// These functions are collective.

/// training.evaluate_at_start: writes a row for step 0. Nothing has been learnt, so there are neither samples
/// nor best weights.
void evaluate_at_start(TrainingRun& run);

/// Takes the weights that a fork begins with for its best ones, because those of its parent have been
/// replaced. They are no part of the log, which has the evaluations of the parent.
void evaluate_start_of_fork(TrainingRun& run);

/// Scores the model on the validation data, writes a row of metrics and samples, and saves the weights as the
/// run's if they are the best so far or best_by is `last`. Throws TrainingError if the loss is not a number.
void evaluate(TrainingRun& run);

/// training.average_last: evaluates the mean of the weights of the last checkpoints and of now, and keeps it
/// if it is better.
void try_mean_of_weights(TrainingRun& run);

/// Says that the model is no better than a guess. Reads the data again, in the first process.
void warn_if_nothing_learnt(const TrainingRun& run);

}  // namespace zoo

#pragma once
// The beginning of a training. Each process calls these functions in this order, the first one before the
// others (TrainingRun::first_before_others()). All errors in the configuration and the data are found before
// an earlier run is replaced.

#include "training/training_run.h"

namespace zoo {

/// Opens the directory of the run, learns or opens the vocabulary, and opens the training data.
void open_data(TrainingRun& run);

/// Makes the model, with new weights or those of `init_from`, and its optimiser. Opens the validation data.
void build_learner(TrainingRun& run);

/// Goes on with the newest checkpoint if there is one, and writes what makes the directory a run.
void begin_or_resume(TrainingRun& run);

/// training.batch_size: auto: finds out how many sequences go through the model at once. Collective.
void fit_into_memory(TrainingRun& run);

/// Reports how many rows go through the model at once, if the number has changed.
void note_rows_at_once(TrainingRun& run);

}  // namespace zoo

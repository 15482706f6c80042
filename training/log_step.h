#pragma once
// Rows of metrics.jsonl about the steps of a training.

#include <string>
#include <string_view>

#include "training/training_run.h"

namespace zoo {

/// Writes a row about the steps since the last one, and sets TrainingRun::status.
void log_step(TrainingRun& run);

/// Metrics on the validation data for a row, without those that are counts.
Metrics prefixed(std::string_view prefix, const Metrics& metrics);
/// The same metrics for people.
std::string in_words(const Metrics& metrics);

}  // namespace zoo

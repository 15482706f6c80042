#pragma once
// What a run's own files say of its training.

#include <filesystem>
#include <optional>

#include "interop/model_card.h"

namespace zoo {

/// The figures of the weights that a run has kept, from its newest checkpoint and metrics.jsonl; nothing if
/// it was not trained itself, or has no weights of an evaluation. Throws CheckpointError, DataError.
std::optional<TrainingFigures> figures_of_run(const std::filesystem::path& dir);

}  // namespace zoo

#pragma once
// A training that leaves another one at a checkpoint.

#include <cstdint>
#include <filesystem>

#include "tasks/experiment.h"

namespace zoo {

/// Says whether a fork may replace what is in its place.
enum class ExistingFork { refuse, replace };

/// Makes the run `to`: a copy of `run` as it was at its checkpoint of this step, which train() then resumes
/// with the configuration `wanted`. Until that step both are the same to the last bit; what differs later
/// comes from the keys that differ. The copy has its parent's best weights if they are not newer; otherwise
/// its first evaluation finds its best ones. It appears when it is complete. It replaces runs alone, and none
/// that is being trained. Throws UsageError if there is no such checkpoint, if `to` exists and may not be
/// replaced, or if it is, holds or lies in `run`, ConfigError if `wanted` has another value of a key that a
/// resumed run must not change, CheckpointError if the run is damaged or a part of it is a link, SystemError.
void fork_run(const std::filesystem::path& run, int64_t step, const Experiment& wanted,
              const std::filesystem::path& to, ExistingFork existing);

}  // namespace zoo

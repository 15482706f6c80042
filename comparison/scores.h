#pragma once
// The scores of trained runs. They are kept beside each run, because evaluating takes long.

#include <filesystem>

#include <c10/core/Device.h>

#include "comparison/report/json.h"

namespace zoo {

/// All metrics of a run's best weights on its validation data, by name; null for a number that is not finite.
/// Throws the errors of Run::open().
Json scores_of(const std::filesystem::path& run_dir, c10::Device device);

/// The same with sequences of another length than in training; null if the validation text is shorter.
Json scores_at(int64_t length, const std::filesystem::path& run_dir, c10::Device device);

}  // namespace zoo

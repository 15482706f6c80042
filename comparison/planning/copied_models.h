#pragma once
// Models that were trained elsewhere, evaluated on data that the user names: directories in Hugging Face's
// form, and runs. Each becomes a run of the comparison, so that nothing is written beside the originals.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "comparison/planning/comparison_config.h"

namespace zoo {

/// Lets the finished runs of a comparison be evaluated on other data than those that they name. Texts are cut
/// into sequences of one length, the shortest of all. With questions, all become models of the task choices.
/// Throws UsageError for a model that gives choices no likelihood.
void evaluate_on(Comparison& comparison, const GivenData& given);

/// Copies each run with a FinishedRun::source to DIR/models/SLUG/seed-N, with the configuration of its
/// variant, and replaces its source with the copy. A copy that is there already is kept if neither source nor
/// configuration have changed. `on_message` gets a line before a copy that takes long. Throws CheckpointError
/// as open_stored_model(), and SystemError.
void copy_models(Comparison& comparison, const std::filesystem::path& dir,
                 const std::function<void(const std::string& line)>& on_message = nullptr);

}  // namespace zoo

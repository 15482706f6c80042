#pragma once
// The results of a comparison that still runs, for a page that shows how far it is.

#include <filesystem>

#include <c10/core/Device.h>

#include "comparison/findings/results.h"

namespace zoo {

/// Results with `progress`, from the logs of the trainings alone: the curves so far, and of finished
/// trainings the best evaluation. Nothing is evaluated, measured or tested. Throws DataError where a log
/// cannot be read.
ComparisonResults running_results(const ComparisonPlan& plan, const std::filesystem::path& dir,
                                  c10::Device device, const Origin& origin, RunState state);

}  // namespace zoo

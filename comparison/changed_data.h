#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comparison/findings/results.h"
#include "comparison/planning/plan.h"

namespace zoo {

/// A sentence about trainings whose data files have the names of another training's, but had other content.
/// So it is where a file was written anew before a comparison was resumed. `runs`: one for each variant.
std::optional<std::string> changed_data(const std::vector<PlannedVariant>& variants,
                                        const std::vector<RunResults>& runs);

}  // namespace zoo

#pragma once
// What each key of a grid changes on average over the other keys: the main effects of a factorial experiment
// (Box & Hunter 1961).

#include <optional>
#include <string>
#include <vector>

#include "comparison/findings/results.h"
#include "comparison/planning/plan.h"

namespace zoo {

/// The main effects of the keys of a grid that have two values each. For each seed that all rows have, the
/// mean over the rows with the second value less that over the rows with the first; a paired t-test over the
/// seeds, corrected for the number of keys. Empty without two such keys, and without a seed that all rows
/// have.
std::vector<MainEffect> main_effects(const ComparisonPlan& plan, const std::vector<RunResults>& runs,
                                     const Metric& metric);

}  // namespace zoo

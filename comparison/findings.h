#pragma once
// What the numbers of a comparison say.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "comparison/metric.h"

namespace zoo {

/// Fills in `versus_baseline` of all runs that have a `baseline`: a paired t-test over the seeds that both
/// have, corrected by Holm's method for the number of tests. `runs` as in docs/comparison.md.
void compare_with_baselines(nlohmann::ordered_json& runs, const Metric& metric);

/// The best run, and which others are better, worse or not to be told from their baselines, in a few
/// sentences.
std::string findings(const nlohmann::ordered_json& runs, const Metric& metric);

}  // namespace zoo

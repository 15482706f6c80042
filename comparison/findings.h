#pragma once
// Tests the differences of a comparison and puts its results into words.

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "training/tasks/metric.h"

namespace zoo {

/// Fills in `versus_baseline` of all runs that have a `baseline`: a paired t-test over the seeds that both
/// runs have, corrected by Holm's method for the number of tests. `runs` is as in docs/comparison.md.
void compare_with_baselines(nlohmann::ordered_json& runs, const Metric& metric);

/// A few sentences: the best run, and which runs are better than, worse than or not significantly different
/// from their baselines.
std::string findings(const nlohmann::ordered_json& runs, const Metric& metric);

}  // namespace zoo

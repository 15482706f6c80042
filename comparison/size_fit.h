#pragma once
// How the loss of each variant falls with its compute: `sizes` in a comparison file.

#include "comparison/plan.h"
#include "pages/json.h"
#include "tasks/metric.h"

namespace zoo {

/// Fits loss against FLOPs over the sizes of each variant (fit_scaling()). The loss is the metric where less
/// is better, else the validation loss; all seeds that count are points. `runs` is as in docs/comparison.md,
/// and so is the result, `sizes`. Null for a plan without sizes, and where a variant has fewer than two sizes
/// with results.
Json size_fit(const ComparisonPlan& plan, const Json& runs, const Metric& metric);

/// A sentence: the compute that each variant but the first needs for the same loss. Empty without sizes, and
/// where the comparison is not fair.
std::string size_finding(const Json& sizes, bool fair);

}  // namespace zoo

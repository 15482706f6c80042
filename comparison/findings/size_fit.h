#pragma once
// How the loss of each variant falls with its compute: `sizes` in a comparison file.

#include <optional>
#include <string>
#include <vector>

#include "comparison/findings/results.h"

namespace zoo {

/// Fits loss against FLOPs over the sizes of each variant (fit_scaling()). The loss is the metric where less
/// is better, else the validation loss; all seeds that count are points. `runs` are those of plan.variants.
/// Nothing for a plan without sizes, and where a variant has fewer than two sizes with results.
std::optional<SizeFit> size_fit(const ComparisonPlan& plan, const std::vector<RunResults>& runs,
                                const Metric& metric);

/// A sentence: the compute that each variant but the first needs for the same loss. Empty without sizes, and
/// where the comparison is not fair.
std::string size_finding(const std::optional<SizeFit>& sizes, bool fair);

}  // namespace zoo

#pragma once
// Where language models differ: bits per byte on slices of the same texts.

#include <vector>

#include "comparison/findings/results.h"

namespace zoo {

/// Fills in `slices` of runs whose examples have some, where the metric is bits per byte, and tests against
/// those of the baseline on the same texts (test_on_slices()). Differences and equivalences, up to `margin`
/// of the baseline's value, are two families of tests, and each is corrected for all slices of all
/// runs. A slice without bytes is left out.
void compare_slices(std::vector<RunResults>& runs, const Metric& metric, double margin,
                    Correction correction = Correction::holm);

}  // namespace zoo

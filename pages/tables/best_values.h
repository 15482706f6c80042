#pragma once
// The columns of a comparison in which one run is the best beyond the noise.

#include <string_view>

#include "pages/json.h"

namespace zoo {

/// Sets `best_in` of each run in `results`: the columns whose best value it has, "metric", "parameters",
/// "flops_per_token", "peak_memory_bytes", "seconds" or "speed.KEY". Its range touches the range of no other
/// run. The range of the metric is its interval, the range of a speed the least and the largest measurement,
/// the range of `seconds` the least and the largest of the seeds, the range of a counted number 0.1 % of it.
/// A value whose range is unknown is never the best. A matched quantity has no best value, nor has the metric
/// of an unfair comparison. Runs that failed do not count.
void mark_best_values(Json& results);

/// Whether `run` has the best value of a column. False for results without marks.
bool is_best_in(const Json& run, std::string_view column);

}  // namespace zoo

#pragma once
// The work of experts in results.json: how many tokens of the validation data each had.

#include <vector>

#include "analysis/expert_loads.h"
#include "pages/json.h"

namespace zoo {

/// `experts` of a run in results.json; empty where there is none, or where it is no list of layers with
/// counts.
std::vector<LayerLoad> expert_loads_of(const Json& run);

}  // namespace zoo

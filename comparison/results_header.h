#pragma once
// The parts of results.json that are known before anything is trained (docs/comparison.md).

#include <string>

#include <c10/core/Device.h>

#include "comparison/plan.h"
#include "pages/json.h"
#include "tasks/metric.h"

namespace zoo {

/// What a comparison was made from.
struct Origin {
  std::string command;  // reproduces the comparison
  std::string yaml;     // the comparison file; empty without one
};

/// What holds for all runs: names, machine, versions, metric, budget, grid and seeds.
Json results_header(const ComparisonPlan& plan, const Metric& metric, c10::Device device,
                    const Origin& origin);

/// A run without its results: names, values of the grid, configuration, and costs that are counted.
Json facts_of(const PlannedVariant& variant);

}  // namespace zoo

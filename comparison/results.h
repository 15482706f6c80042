#pragma once
// Collects the results of a comparison in one JSON document, from which the table and the reports are made.
// docs/comparison.md describes it.

#include <filesystem>
#include <functional>
#include <string>

#include <c10/core/Device.h>
#include <nlohmann/json.hpp>

#include "comparison/plan.h"
#include "comparison/results_header.h"
#include "pages/json.h"

namespace zoo {

struct ResultsOptions {
  std::filesystem::path dir;  // of the comparison, with its runs
  c10::Device device = c10::kCPU;
  Origin origin;
  Json tuning = nullptr;                                              // see Tuned::record
  std::function<bool()> should_stop = nullptr;                        // called between runs
  std::function<void(const std::string& line)> on_message = nullptr;  // called with the current task
};

/// Evaluates and measures all runs of a plan. Keeps results that take long, each together with everything
/// that it depends on, and reuses them: scores beside each run, speeds in DIR/measured. Returns null where
/// `should_stop` ended it. Throws CheckpointError where a run is missing or damaged, and DataError.
nlohmann::ordered_json collect_results(const ComparisonPlan& plan, const ResultsOptions& options);

}  // namespace zoo

#pragma once
// Collects the results of a comparison whose runs are trained.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <c10/core/Device.h>

#include "comparison/findings/results.h"

namespace zoo {

struct ResultsOptions {
  std::filesystem::path dir;  // of the comparison, with its runs
  c10::Device device = c10::kCPU;
  Origin origin;
  std::optional<TuningResults> tuning = {};
  std::function<bool()> should_stop = nullptr;                        // called between runs
  std::function<void(const std::string& line)> on_message = nullptr;  // called with the current task
};

/// Evaluates and measures all runs of a plan. Keeps results that take long, each together with everything
/// that it depends on, and reuses them: scores beside each run, speeds in DIR/measured. Returns nothing where
/// `should_stop` ended it. Throws CheckpointError where a run is missing or damaged, and DataError.
std::optional<ComparisonResults> collect_results(const ComparisonPlan& plan, const ResultsOptions& options);

}  // namespace zoo

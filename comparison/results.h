#pragma once
// What came of a comparison: one JSON document, from which table and report are made. docs/comparison.md
// describes it.

#include <filesystem>
#include <functional>
#include <string>

#include <c10/core/Device.h>
#include <nlohmann/json_fwd.hpp>

#include "comparison/plan.h"

namespace zoo {

struct ResultsOptions {
  std::filesystem::path dir;  // of the comparison, where its runs are
  c10::Device device = c10::kCPU;
  std::string command;                                                // that reproduces the comparison
  std::function<bool()> should_stop = nullptr;                        // asked between runs
  std::function<void(const std::string& line)> on_message = nullptr;  // what is being done
};

/// Evaluates and measures all runs of a plan. What takes long is kept in `dir`, so that it is not done again:
/// scores beside each run, speeds in DIR/measured, each with what it depends on. Returns null where it was
/// told to stop. Throws CheckpointError where a run is missing or damaged, DataError.
nlohmann::ordered_json collect_results(const ComparisonPlan& plan, const ResultsOptions& options);

}  // namespace zoo

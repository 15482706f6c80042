#pragma once
// A comparison from beginning to end: plan, train, measure, report.

#include <filesystem>
#include <functional>
#include <string>

#include <c10/core/Device.h>
#include <nlohmann/json.hpp>

#include "comparison/comparison_config.h"
#include "comparison/plan.h"
#include "training/trainer.h"

namespace zoo {

struct CompareOptions {
  std::filesystem::path dir;                   // where everything goes
  ExistingRun existing = ExistingRun::refuse;  // what to do where `dir` holds a comparison already
  std::filesystem::path program;               // zoo, which is started for each training
  std::string device = "auto";                 // as zoo train takes it
  int64_t jobs = 1;                            // trainings at a time
  std::string command;                         // that reproduces the comparison, for the report
  std::function<void(const ComparisonPlan& plan)> on_plan = nullptr;  // before anything is trained
  std::function<void(const std::string& line)> on_message = nullptr;
  std::function<bool()> should_stop = nullptr;  // asked now and then: save and return?
};

/// Trains what is not trained yet and writes DIR/results.json, DIR/report.html and DIR/report.md. Returns the
/// results, or null where it was told to stop: then the same call with ExistingRun::resume goes on. Throws
/// UsageError (the directory is taken, or holds other runs under the same names), and what make_plan,
/// remove_comparison, train_all and collect_results throw.
nlohmann::ordered_json compare(const Comparison& comparison, const CompareOptions& options);

}  // namespace zoo

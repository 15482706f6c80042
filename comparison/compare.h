#pragma once
// A comparison from beginning to end: plan, train, measure, report.

#include <filesystem>
#include <functional>
#include <string>

#include <c10/core/Device.h>
#include <nlohmann/json.hpp>

#include "comparison/planning/comparison_config.h"
#include "comparison/planning/plan.h"
#include "training/trainer.h"

namespace zoo {

struct CompareOptions {
  std::filesystem::path dir;                   // for all files of the comparison
  ExistingRun existing = ExistingRun::refuse;  // what to do where `dir` already holds a comparison
  std::filesystem::path program;               // zoo, which is started for each training
  std::string device = "auto";                 // as for zoo train
  int64_t jobs = 1;                            // number of trainings that run at a time
  std::string command;                         // reproduces the comparison; shown in the report
  std::function<void(const ComparisonPlan& plan)> on_plan = nullptr;  // called before anything is trained
  std::function<void(const std::string& line)> on_message = nullptr;
  /// Words an error that the results keep, which may name members of this struct. Default: as it is.
  std::function<std::string(std::string error)> word_error = nullptr;
  std::function<bool()> should_stop = nullptr;  // called from time to time; true: save and return
};

/// Chooses the best candidate of each variant that has some, trains every run that is not trained yet, and
/// writes DIR/results.json, DIR/report.html and DIR/report.md. Returns the results, or null where
/// `should_stop` ended it: the same call with ExistingRun::resume then goes on. Throws UsageError where the
/// directory is taken or holds other runs under the same names. Also throws the errors of make_plan,
/// remove_comparison, train_all and collect_results.
nlohmann::ordered_json compare(const Comparison& comparison, const CompareOptions& options);

/// Writes DIR/report.html and DIR/report.md from a results.json, and makes DIR if need be. Throws DataError
/// where it is not as docs/comparison.md describes, SystemError.
void write_reports(const nlohmann::ordered_json& results, const std::filesystem::path& dir);

}  // namespace zoo

#pragma once
// Trains what a plan says, each run in a process of its own: one run's memory, threads and death are not
// another's.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "comparison/plan.h"

namespace zoo {

struct RunnerOptions {
  std::filesystem::path dir;                    // of the comparison
  std::filesystem::path program;                // zoo
  std::string device = "auto";                  // as zoo train takes it
  int64_t jobs = 1;                             // trainings at a time, which share the machine's cores
  std::function<bool()> should_stop = nullptr;  // asked now and then: save and return?
  std::function<void(const std::string& line)> on_message = nullptr;  // of each training that ends
};

enum class RunnerEnd { all_trained, interrupted };

/// DIR/runs/SLUG/seed-N
std::filesystem::path run_dir_of(const std::filesystem::path& dir, const PlannedVariant& variant,
                                 int64_t seed);

/// How many trainings of a comparison ran at a time, at most, in all calls of train_all() together.
int64_t most_jobs(const std::filesystem::path& dir);

/// Trains every seed of every variant that is not trained yet; a run that was interrupted goes on at its last
/// checkpoint. A run whose loss becomes NaN is left as it is: see failure_of(). Shows progress on stderr.
/// Throws UsageError where a run in `dir` has another configuration, SystemError where a training cannot go
/// on for other reasons, in which case the others are stopped and have saved.
RunnerEnd train_all(const ComparisonPlan& plan, const RunnerOptions& options);

}  // namespace zoo

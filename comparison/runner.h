#pragma once
// Trains the variants of a plan. Each run is a process of its own: runs share neither memory nor threads, and
// the crash of one does not damage the others.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "comparison/planning/plan.h"

namespace zoo {

struct RunnerOptions {
  std::filesystem::path dir;                    // of the comparison
  std::filesystem::path program;                // zoo
  std::string device = "auto";                  // as for zoo train
  int64_t jobs = 1;                             // trainings at a time; they share the machine's cores
  std::optional<int64_t> threads = {};          // of each training; default: its share of the cores
  std::function<bool()> should_stop = nullptr;  // called from time to time; true: save and return
  std::function<void(const std::string& line)> on_message = nullptr;  // called when a training ends
  std::function<void()> on_advance = nullptr;  // called when a training has ended, and from time to time
};

enum class RunnerEnd { all_trained, interrupted };

/// The directory of a training: DIR/runs/SLUG/seed-N, or the directory of a finished run.
std::filesystem::path run_dir_of(const std::filesystem::path& dir, const PlannedVariant& variant,
                                 int64_t seed);

/// The largest number of trainings of a comparison that ran at a time, over all calls of train_all().
int64_t most_jobs(const std::filesystem::path& dir);

/// Trains every seed of every variant that is not trained yet. An interrupted run goes on at its last
/// checkpoint. A run whose loss becomes NaN is left as it is: see failure_of(). Shows progress on stderr.
/// Throws UsageError where a run in `dir` has another configuration, CheckpointError where a directory in
/// `dir` is a link. Throws SystemError where a training cannot go on for other reasons; the other trainings
/// then save and stop.
RunnerEnd train_all(const ComparisonPlan& plan, const RunnerOptions& options);

}  // namespace zoo

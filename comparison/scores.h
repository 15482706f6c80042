#pragma once
// The scores of trained runs. They are kept beside each run, because evaluating takes long.

#include <filesystem>
#include <string>

#include <c10/core/Device.h>

#include "comparison/plan.h"
#include "pages/json.h"
#include "tasks/metric.h"

namespace zoo {

/// All metrics of a run's best weights on its validation data, by name; null for a number that is not finite.
/// Throws the errors of Run::open().
Json scores_of(const std::filesystem::path& run_dir, c10::Device device);

/// The confusion matrix of the same evaluation, {"labels", "counts"}; null for a task that does not classify,
/// and for more than ConfusionCounts::kMostClasses. Throws the errors of Run::open().
Json confusion_of_run(const std::filesystem::path& run_dir, c10::Device device);

/// The metric that ranks the runs of a plan: the one for texts that a tokenizer changed, if a run has such a
/// tokenizer (TaskType::lossy_comparison). Runs that have not begun, or failed, do not count. Throws
/// CheckpointError.
Metric metric_of_runs(const ComparisonPlan& plan, const std::filesystem::path& dir);

/// The value of a metric among `scores`, whose names begin with `prefix`; null if it is not there.
Json value_of(const Metric& metric, const Json& scores, const std::string& prefix = "");

/// The same with sequences of another length than in training; null if the validation text is shorter.
Json scores_at(int64_t length, const std::filesystem::path& run_dir, c10::Device device);

}  // namespace zoo

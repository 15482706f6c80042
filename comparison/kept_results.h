#pragma once
// Reads the curves and the scores of trained runs from their files. The scores are kept beside each run,
// because evaluating takes long.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "comparison/findings/results.h"
#include "pages/json.h"

namespace zoo {

/// The key of kept scores. If weights, configuration, data or device change, scores are computed again.
Json score_key(const std::filesystem::path& run_dir, c10::Device device);

/// All metrics of a run's best weights on its validation data, by name; NaN for a number that is not finite.
/// Throws the errors of Run::open().
Metrics scores_of(const std::filesystem::path& run_dir, c10::Device device);

/// The same with sequences of another length than in training; nothing if the validation text is shorter.
std::optional<Metrics> scores_at(int64_t length, const std::filesystem::path& run_dir, c10::Device device);

/// The confusion matrix of the evaluation of scores_of(); nothing for a task that does not classify, and for
/// more than ConfusionCounts::kMostClasses. Throws the errors of Run::open().
std::optional<ConfusionMatrix> confusion_of_run(const std::filesystem::path& run_dir, c10::Device device);

/// The value and the weight of each example of the same evaluation: the metric is their weighted mean.
/// Nothing for a metric that is no mean over examples, such as BLEU. Throws the errors of Run::open().
std::optional<ExampleValues> examples_of_run(const std::filesystem::path& run_dir, const Metric& metric,
                                             c10::Device device);

/// What a run of the task text_to_text makes of its validation data. Throws the errors of Run::open() and
/// translate().
Translations translations_of_run(const std::filesystem::path& run_dir, c10::Device device);

/// The rows of RUN/metrics.jsonl.
Curves read_curves(const std::filesystem::path& run_dir, const Metric& metric);

/// The metric that ranks the runs of a plan: the one for texts that a tokenizer changed, if a run has such a
/// tokenizer (TaskType::lossy_comparison). Runs that have not begun, or failed, do not count. Throws
/// CheckpointError.
Metric metric_of_runs(const ComparisonPlan& plan, const std::filesystem::path& dir);

/// The value of a metric among `scores`, whose names begin with `prefix`; nothing if it is not there, or not
/// finite.
std::optional<double> value_of(const Metric& metric, const Metrics& scores, const std::string& prefix = "");

/// As in results.json.
void to_json(Json& json, const RunSpeed& speed);

// From kept JSON. Nothing where it is not as it was written.
std::optional<Metrics> metrics_in(const Json& json);  // null becomes NaN
std::optional<RunSpeed> speed_in(const Json& json);
std::optional<std::vector<ScalingCurve>> scaling_in(const Json& json);

}  // namespace zoo

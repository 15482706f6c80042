#pragma once
// Lets each variant of a comparison choose its own best values before it is trained: `tune` in a comparison
// file. One learning rate for all would measure which variant likes that rate.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "comparison/findings/results.h"
#include "comparison/planning/comparison_config.h"
#include "comparison/runner.h"

namespace zoo {

/// Whether some variant has candidates to choose from.
bool is_tuned(const Comparison& comparison);

/// The number of short trainings.
int64_t n_tuning_runs(const Comparison& comparison);

struct Tuned {
  Comparison comparison;  // each variant with its best candidate as its experiment
  TuningResults results;
};

/// Trains every candidate of every variant for a share of the budget in `plan`, which is the plan of
/// `comparison`, with seeds that the comparison does not use. The candidate with the best mean of the task's
/// metric is chosen. The runs are in DIR/tuning; those that are trained already are kept. Returns nothing
/// where options.should_stop ended it. Throws the errors of make_plan() and train_all(), and TrainingError
/// where no candidate of a variant could be trained.
std::optional<Tuned> tune(const Comparison& comparison, const ComparisonPlan& plan,
                          const RunnerOptions& options, c10::Device device);

// The parts of tune().

/// The short trainings as a comparison: every candidate of every variant, in this order. Each takes the share
/// `tune.share` of `budget`, and its warm-up is shortened alike.
Comparison short_trainings(const Comparison& comparison, const Budget& budget);

/// What the short trainings of a candidate reached and cost.
struct CandidateOutcome {
  std::vector<double> values;     // of the metric, of the seeds that did not fail
  double flops = 0, seconds = 0;  // of all seeds
};

/// Evaluates the runs of a candidate, which are in `dir`. Throws CheckpointError.
CandidateOutcome outcome_of(const PlannedVariant& candidate, const std::filesystem::path& dir,
                            const Metric& metric, c10::Device device);

/// The candidate with the best mean over all seeds. One with a failed seed is never chosen; nothing if all
/// have one.
std::optional<size_t> best_of(const std::vector<CandidateOutcome>& outcomes, size_t n_seeds,
                              const Metric& metric);

/// The keys of which the chosen candidate has the least or the largest of several numbers: others beyond
/// them may be better.
std::vector<std::string> keys_at_edge(const std::vector<Candidate>& candidates, const Candidate& chosen);

}  // namespace zoo

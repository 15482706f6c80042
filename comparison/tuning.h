#pragma once
// Lets each variant of a comparison choose its own best values before it is trained: `tune` in a comparison
// file. One learning rate for all would measure which variant likes that rate.

#include <optional>

#include <c10/core/Device.h>

#include "comparison/comparison_config.h"
#include "comparison/plan.h"
#include "comparison/report/json.h"
#include "comparison/runner.h"

namespace zoo {

/// Whether some variant has candidates to choose from.
bool is_tuned(const Comparison& comparison);

/// The number of short trainings.
int64_t n_tuning_runs(const Comparison& comparison);

struct Tuned {
  Comparison comparison;  // each variant with its best candidate as its experiment
  Json record;            // `tuning` in results.json
};

/// Trains every candidate of every variant for a share of the budget in `plan`, which is the plan of
/// `comparison`, with seeds that the comparison does not use. The candidate with the best mean of the task's
/// metric is chosen. The runs are in DIR/tuning; those that are trained already are kept. Returns nothing
/// where options.should_stop ended it. Throws the errors of make_plan() and train_all(), and TrainingError
/// where no candidate of a variant could be trained.
std::optional<Tuned> tune(const Comparison& comparison, const ComparisonPlan& plan,
                          const RunnerOptions& options, c10::Device device);

}  // namespace zoo

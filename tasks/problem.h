#pragma once
// What the tasks that classify share: the key `problem`, and what follows from it.

#include <string>
#include <vector>

#include <torch/types.h>

#include "data/batch_source.h"
#include "data/labels.h"
#include "io/config/config_file.h"
#include "io/metrics_log.h"
#include "models/model.h"
#include "tasks/evaluation.h"
#include "tasks/experiment.h"
#include "tasks/metric.h"
#include "tasks/prediction.h"

namespace zoo {

/// The key `problem` of a task.
void describe_problem(ConfigVisitor& v, Problem& problem);

/// For TaskType::problem: `problem` of the keys of a task, a struct with this member.
template <class Struct>
Problem& problem_in(TypeOptions& options) {
  return dynamic_cast<OptionsOf<Struct>&>(options).value.problem;
}

/// The problem of an experiment's task; single_label for a task without the key.
Problem problem_of(const Experiment& experiment);
/// Sets it. The task has the key.
void set_problem(Experiment& experiment, Problem problem);

/// Complains about keys of the training that are for another problem.
void validate_problem(const Experiment& experiment, const Complain& complain);

/// The metrics of the other problems than single_label, for TaskType::best_by.
std::vector<Metric> metrics_of_problems();
/// The metric that ranks the rows of a comparison: TaskType::comparison, or one of metrics_of_problems().
Metric comparison_metric(const Experiment& experiment);

/// How the outputs of a model become what it says, in a word: "softmax", "sigmoid", "none".
std::string activation_of(Problem problem);
/// The same for people: "any of 3 labels: a sigmoid of each output".
std::string answer_of(Problem problem, int64_t n_outputs);
/// (…, C) of any type → (…, C) double on the CPU. Throws CheckpointError for NaN.
torch::Tensor activated(const torch::Tensor& logits, Problem problem);

/// What a model says of an input: `outputs`, (C) as activated() gives them; undefined: there is nothing to
/// classify.
PredictedAnswer answer_from(const torch::Tensor& outputs, Problem problem,
                            const std::vector<std::string>& labels);

/// How examples name several labels together.
struct LabelWords {
  const std::vector<std::string>& labels;
  std::string separator = ", ";
  std::string none = {};  // stands where there is no label
};

/// The loss and the metrics of a model for several labels or for numbers on some batches: loss, targets, and
///   multi_label  f1_micro, f1_macro, map, and accuracy: the share of the inputs whose labels are all right
///   regression   pearson, spearman; the means over the numbers if there are several
/// Throws DataError if there are no targets.
Metrics evaluate_problem(Model& model, BatchSource& source, Problem problem, const LabelWords& words,
                         const EvaluationOptions& options);

}  // namespace zoo

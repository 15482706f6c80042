#include "tasks/problem.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "tasks/examples.h"
#include "tasks/labels.h"
#include "tasks/metrics/label_metrics.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

Metric percent(std::string key, std::string label) {
  return {.key = std::move(key), .label = std::move(label), .better = Better::higher, .percent = true};
}

/// Those of a problem other than single_label; its comparisons rank by the first.
std::vector<Metric> metrics_of(Problem problem) {
  if (problem == Problem::multi_label)
    return {percent("map", "mAP"), percent("f1_micro", "micro F1"), percent("f1_macro", "macro F1")};
  return {{.key = "spearman", .label = "Spearman's correlation", .better = Better::higher},
          {.key = "pearson", .label = "Pearson's correlation", .better = Better::higher}};
}

bool names_metric(const std::vector<Metric>& metrics, const std::string& key) {
  return std::ranges::find(metrics, key, &Metric::key) != metrics.end();
}

/// Whether a task with this problem measures the metric.
bool measures(Problem problem, const std::string& key) {
  if (key == "loss") return true;
  if (problem == Problem::single_label) return !names_metric(metrics_of_problems(), key);
  return names_metric(metrics_of(problem), key) || (problem == Problem::multi_label && key == "accuracy");
}

/// The rows of all processes, (n, C) double each; their order is not said. Collective.
torch::Tensor of_all_processes(const torch::Tensor& own, const EvaluationOptions& options) {
  if (options.n_processes() == 1) return own;
  auto counts = torch::zeros({options.n_processes()}, torch::kLong);
  counts[options.rank()] = own.size(0);
  auto n_outputs = torch::zeros({options.n_processes()}, torch::kLong);
  n_outputs[options.rank()] = own.size(1);
  sum_over_processes(options, counts);
  sum_over_processes(options, n_outputs);
  auto all = torch::zeros({counts.sum().item<int64_t>(), n_outputs.max().item<int64_t>()}, torch::kDouble);
  const auto before = counts.narrow(0, 0, options.rank()).sum().item<int64_t>();
  if (own.size(0) > 0) all.narrow(0, before, own.size(0)).copy_(own);
  sum_over_processes(options, all);
  return all;
}

torch::Tensor joined(const std::vector<torch::Tensor>& parts) {
  return parts.empty() ? torch::zeros({0, 0}, torch::kDouble) : torch::cat(parts);
}

}  // namespace

void describe_problem(ConfigVisitor& v, Problem& problem) {
  v.field("problem", problem,
          "single_label: one of the classes is right. multi_label: any number of the labels "
          "(data.label_separator), each with a probability of its own; binary cross-entropy. regression: a "
          "number; squared error. A model with one label says a score: with multi_label a sigmoid, with "
          "regression the number itself.");
}

Problem problem_of(const Experiment& experiment) {
  const auto* type = task_types().find(experiment.task.type);
  if (!type || !type->problem || !experiment.task.options) return Problem::single_label;
  return type->problem(*experiment.task.options->copy());
}

void set_problem(Experiment& experiment, Problem problem) {
  const auto& type = task_type(experiment);
  auto options = experiment.task.options ? experiment.task.options->copy() : type.make_options();
  type.problem(*options) = problem;
  experiment.task.options = std::move(options);
}

void validate_problem(const Experiment& experiment, const Complain& complain) {
  const auto problem = problem_of(experiment);
  const auto& training = experiment.training;
  if (!training.keeps_last() && !measures(problem, training.best_by)) {
    complain("training.best_by",
             fmt::format("{} is not measured for task.problem {}", training.best_by, name_of(problem)));
  }
  if (problem == Problem::single_label) return;
  if (training.objective.type != "task") {
    complain("training.objective", fmt::format("{} is for task.problem single_label, not for {}",
                                               training.objective.type, name_of(problem)));
  }
  if (problem == Problem::regression && training.label_smoothing > 0)
    complain("training.label_smoothing", "is for labels, not for numbers (task.problem: regression)");
}

std::vector<Metric> metrics_of_problems() {
  auto metrics = metrics_of(Problem::multi_label);
  std::ranges::move(metrics_of(Problem::regression), std::back_inserter(metrics));
  return metrics;
}

Metric comparison_metric(const Experiment& experiment) {
  const auto problem = problem_of(experiment);
  return problem == Problem::single_label ? task_type(experiment).comparison : metrics_of(problem).front();
}

std::string activation_of(Problem problem) {
  return problem == Problem::single_label ? "softmax" : problem == Problem::multi_label ? "sigmoid" : "none";
}

std::string answer_of(Problem problem, int64_t n_outputs) {
  switch (problem) {
    case Problem::single_label:
      return fmt::format("one of {} classes: the softmax of the outputs", n_outputs);
    case Problem::multi_label:
      return n_outputs == 1 ? "a score: the sigmoid of the output"
                            : fmt::format("any of {} labels: the sigmoid of each output", n_outputs);
    case Problem::regression:
      return n_outputs == 1 ? "a score: the output itself"
                            : fmt::format("{} numbers: the outputs themselves", n_outputs);
  }
  C10_THROW_ERROR(ValueError, "unknown Problem");
}

torch::Tensor activated(const torch::Tensor& logits, Problem problem) {
  auto outputs = logits.to(torch::kCPU, torch::kDouble);
  if (problem == Problem::single_label) outputs = outputs.softmax(-1);
  if (problem == Problem::multi_label) outputs = outputs.sigmoid();
  if (outputs.isnan().any().item<bool>()) fail_not_a_number();
  return outputs;
}

PredictedAnswer answer_from(const torch::Tensor& outputs, Problem problem,
                            const std::vector<std::string>& labels) {
  if (problem != Problem::single_label && labels.size() == 1) {
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    return PredictedScore{outputs.defined() ? outputs.item<double>() : nothing};
  }
  if (!outputs.defined()) return PredictedLabels{.problem = problem};
  return PredictedLabels{problem == Problem::regression ? named(outputs, labels) : ranked(outputs, labels),
                         problem};
}

namespace {

/// What a target, or a prediction of it, says: labels above 0, or numbers. `values`: (C) double.
std::string words_of(const torch::Tensor& values, Problem problem, const LabelWords& words) {
  std::vector<std::string> list;
  for (int64_t i = 0; i < values.size(0); ++i) {
    const double value = values[i].item<double>();
    if (problem == Problem::regression) {
      list.push_back(fmt::format("{:g}", value));
    } else if (value > 0) {
      list.push_back(words.labels[static_cast<size_t>(i)]);
    }
  }
  return list.empty() ? words.none : fmt::format("{}", fmt::join(list, words.separator));
}

}  // namespace

Metrics evaluate_problem(Model& model, BatchSource& source, Problem problem, const LabelWords& words,
                         const EvaluationOptions& options) {
  std::vector<torch::Tensor> outputs, targets;
  ExampleRecorder examples(options);
  const Score scored = score(
      model, source, examples.options(),
      [&](const torch::Tensor& logits, const torch::Tensor& right) {
        outputs.push_back(logits.to(torch::kCPU, torch::kDouble));
        targets.push_back(right.to(torch::kCPU, torch::kDouble));
        for (int64_t i = 0; examples.is_wanted() && i < right.size(0); ++i) {
          examples.add_words(words_of(outputs.back()[i], problem, words),
                             words_of(targets.back()[i], problem, words));
        }
        if (problem == Problem::multi_label) examples.add_answers((logits > 0).eq(right > 0.5).all(1));
      },
      problem);
  if (scored.targets == 0) throw DataError("the data to be scored have no targets");
  const auto all = of_all_processes(joined(outputs), options),
             right = of_all_processes(joined(targets), options);
  Metrics metrics{{"loss", scored.loss()}, {"targets", static_cast<double>(scored.targets)}};
  examples.finish_rows();
  if (problem == Problem::multi_label) {
    const auto measured = label_metrics(all, right);
    metrics["f1_micro"] = measured.micro_f1;
    metrics["f1_macro"] = measured.macro_f1;
    metrics["map"] = measured.mean_average_precision;
    metrics["accuracy"] = measured.exact;
    return metrics;
  }
  const auto n = static_cast<double>(all.size(1));
  for (int64_t i = 0; i < all.size(1); ++i) {
    const auto predicted = all.select(1, i), actual = right.select(1, i);
    metrics["pearson"] += pearson_correlation(predicted, actual) / n;
    metrics["spearman"] += spearman_correlation(predicted, actual) / n;
  }
  return metrics;
}

}  // namespace zoo

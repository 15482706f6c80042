#include "tasks/task.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "models/families/families.h"
#include "models/heads.h"
#include "models/lora.h"
#include "tasks/evaluation.h"
#include "tasks/examples.h"
#include "tasks/label_loss.h"
#include "tasks/library_tasks.h"
#include "tasks/metric_types.h"
#include "tasks/problem.h"
#include "tasks/token_cross_entropy.h"
#include "text/corpus.h"

namespace zoo {

std::string to_text(const std::vector<Sample>& samples) {
  std::string text;
  for (const auto& sample : samples) {
    if (!sample.input.empty()) text += fmt::format("  {}\n", sample.input);
    text += fmt::format("> {}\n", sample.output);
    if (sample.reference) text += fmt::format("= {}\n", *sample.reference);
  }
  return text;
}

Task::Task(Experiment experiment, Vocabulary vocabulary)
    : experiment_(std::move(experiment)), vocabulary_(std::move(vocabulary)) {}

BatchSource& Task::batches(Split split) {
  auto& source = sources_[static_cast<size_t>(split)];
  if (source) return *source;
  try {
    source = open(split);
  } catch (const UnknownSymbolError& error) {
    throw DataError(fmt::format("{}: {}", corpus_name(experiment_.data, split), error.what()));
  }
  return *source;
}

std::string Task::hash_of_data() const { return zoo::hash_of_data(experiment_.data); }

BatchOptions Task::batch_options(Split split) const {
  const auto& config = experiment_;
  BatchOptions options;
  options.batch_size = config.training.sequences();
  // In an evaluation whole batches go through the model; their size must not depend on the memory either.
  constexpr int64_t most_to_evaluate = 32;
  if (config.training.batch_size.is_auto() && split != Split::train)
    options.batch_size = std::min(options.batch_size, most_to_evaluate);
  options.batch_tokens = config.training.batch_tokens;
  options.seed = static_cast<uint64_t>(config.training.seed);
  options.order = split == Split::train ? BatchOptions::Order::shuffled : BatchOptions::Order::sequential;
  options.bucketing =
      config.data.bucket_by_length ? BatchOptions::Bucketing::by_length : BatchOptions::Bucketing::none;
  return options;
}

const Tokenizer& Task::tokenizer() const {
  if (!vocabulary_.tokenizer)
    throw UsageError(fmt::format("the task {} has no tokenizer", experiment_.task.type));
  return *vocabulary_.tokenizer;
}

std::shared_ptr<const Objective> Task::objective() const {
  const ObjectiveContext context{.label_smoothing = experiment_.training.label_smoothing};
  const auto& selection = experiment_.training.objective;
  const auto& type = objective_types().at(selection);
  return type.make ? type.make(selection, context) : own_objective(context);
}

std::shared_ptr<const Objective> Task::own_objective(const ObjectiveContext& context) const {
  const auto problem = problem_of(experiment_);
  if (problem != Problem::single_label) return std::make_shared<LabelLoss>(problem, context.label_smoothing);
  return std::make_shared<TokenCrossEntropy>(
      TokenCrossEntropyOptions{.label_smoothing = context.label_smoothing});
}

Metrics Task::evaluate(Model& model, Split split, const EvaluationOptions& options) {
  const auto& selected = experiment_.training.metrics;
  if (selected.empty()) {
    auto metrics = measure(model, split, options);
    if (options.examples) name_documents(experiment_.data, split, *options.examples);
    return metrics;
  }
  if (options.n_processes() > 1)
    throw UsageError("training.metrics are measured by one process: leave them out, or train with one");
  std::vector<ExampleScore> own;
  auto wanted = options;
  wanted.processes = nullptr;
  if (!wanted.examples) wanted.examples = &own;
  auto metrics = measure(model, split, wanted);
  if (wanted.examples->empty()) {
    throw UsageError(fmt::format("the task {} has no scores of single examples, which training.metrics need",
                                 experiment_.task.type));
  }
  name_documents(experiment_.data, split, *wanted.examples);
  for (const auto& selection : selected) {
    const auto& type = metric_types().at(selection);
    if (!metrics.emplace(type.name, type.measure(selection, *wanted.examples)).second) {
      throw UsageError(
          fmt::format("training.metrics: the task {} measures {} itself", experiment_.task.type, type.name));
    }
  }
  return metrics;
}

Metrics Task::measure(Model& model, Split split, const EvaluationOptions& options) {
  const auto mean = mean_of_objective(model, *objective(), batches(split), options);
  return {{"loss", mean.loss()}, {"targets", static_cast<double>(mean.targets)}};
}

std::vector<Sample> Task::samples(Model&, const std::vector<std::string>&) { return {}; }

std::vector<Prediction> Task::predict(Model&, const std::vector<std::string>&, const PredictOptions&) {
  throw UsageError(fmt::format("the task {} makes no predictions for single inputs", experiment_.task.type));
}

ImageInputs Task::read_inputs(const std::vector<std::string>&) const {
  throw UsageError(fmt::format("the task {} reads no images", experiment_.task.type));
}

Registry<TaskType>& task_types() {
  static Registry<TaskType> types(
      "task", {language_modeling(), masked_language_modeling(), text_to_text(), text_classification(),
               token_classification(), marked_tokens(), choices(), text_features(), image_classification(),
               object_detection(), image_features(), image_text_similarity(), speech_recognition(),
               structure_prediction()});
  return types;
}

std::vector<std::string> TaskType::metric_names() const {
  std::vector<std::string> names{"loss"};
  for (const auto& metric : best_by) names.push_back(metric.key);
  return names;
}

Better TaskType::better(std::string_view key) const {
  const auto found = std::ranges::find(best_by, key, &Metric::key);
  if (found != best_by.end()) return found->better;
  const auto* const type = metric_types().find(key);
  return type ? type->better : Better::lower;
}

const TaskType& task_type(const Experiment& experiment) { return task_types().at(experiment.task); }

std::unique_ptr<Task> task_with_vocabulary(const Experiment& experiment, Vocabulary vocabulary) {
  return task_type(experiment).make(experiment, std::move(vocabulary));
}

std::shared_ptr<Model> initialized_model(const Experiment& experiment, const Task& task) {
  const auto purpose = task.purpose();
  const int64_t vocab_size = experiment.model.vocab_size.value_or(purpose.vocab_size);
  if (vocab_size < purpose.vocab_size && !experiment.init_from) {
    throw ConfigError(
        fmt::format("model.vocab_size: {} is less than the {} tokens of the tokenizer: leave the key out",
                    vocab_size, purpose.vocab_size));
  }
  auto model = initialized_model(experiment.model, purpose);
  if (const auto& lora = experiment.training.lora) add_adapters(*model, *lora, purpose.head);
  return model;
}

std::shared_ptr<Model> uninitialized_model(const Experiment& experiment, const Task& task) {
  const auto purpose = task.purpose();
  auto model = uninitialized_model(experiment.model, purpose);
  if (const auto& lora = experiment.training.lora) add_adapters(*model, *lora, purpose.head);
  return model;
}

void Task::set_mean_target(const torch::Tensor& targets) {
  mean_target_ = targets.to(torch::kDouble).mean(0).to(torch::kFloat);
}

void start_at_mean(const Task& task, Model& model) {
  const auto& mean = task.mean_target();
  if (!mean.defined()) return;
  const torch::NoGradGuard no_gradients;
  for (auto& item : model.named_parameters()) {
    const bool is_bias = is_of_classifier(item.key()) && item.key().ends_with(".bias");
    if (is_bias && item.value().sizes() == mean.sizes()) item.value().copy_(mean);
  }
}

}  // namespace zoo

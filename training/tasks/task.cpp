#include "training/tasks/task.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "data/text/corpus.h"
#include "training/tasks/evaluation.h"
#include "training/tasks/tasks.h"

namespace zoo {
namespace {

using MakeTask = std::unique_ptr<Task> (*)(const Experiment&, Vocabulary);

struct TaskEntry {
  TaskKind kind;
  MakeTask make;
};

// A new task is a file in tasks/ and a line here.
constexpr TaskEntry tasks[] = {
    {TaskKind::language_modeling, make_language_modeling},
    {TaskKind::masked_language_modeling, make_masked_language_modeling},
    {TaskKind::text_to_text, make_text_to_text},
    {TaskKind::text_classification, make_text_classification},
};

}  // namespace

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

BatchOptions Task::batch_options(Split split) const {
  const auto& config = experiment_;
  BatchOptions options;
  options.batch_size = config.training.sequences();
  // What is evaluated goes through the model batch by batch, and must not depend on the memory either.
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

Metrics Task::evaluate(Model& model, Split split, const EvaluationOptions& options) {
  return loss_metrics(score(model, batches(split), options));
}

std::shared_ptr<const Tokenizer> make_tokenizer_for(
    const TokenizerConfig& config, SpecialTokenSet special,
    const std::vector<const std::vector<std::string>*>& corpora) {
  return make_tokenizer(config, special, [&](const std::function<void(std::string_view)>& sink) {
    for (const auto* corpus : corpora) {
      for (const auto& text : *corpus) sink(text);
    }
  });
}

std::unique_ptr<Task> open_task(const Experiment& experiment, Vocabulary vocabulary) {
  for (const auto& entry : tasks) {
    if (entry.kind == experiment.task) return entry.make(experiment, std::move(vocabulary));
  }
  throw ConfigError(fmt::format("task: {} is not in this build", name_of(experiment.task)));
}

std::shared_ptr<Model> make_model(const Experiment& experiment, const Task& task) {
  return make_model(experiment.model, task.purpose());
}

}  // namespace zoo

#pragma once
// The types of `task:`. To add a task, make a TaskType in a file of its own and call task_types().add(), in
// the library or in another program.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/labels.h"
#include "generation/generation_config.h"
#include "io/config/registry.h"
#include "models/model.h"
#include "tasks/metric.h"
#include "tasks/prediction.h"
#include "tasks/vocabulary.h"

namespace zoo {

struct Experiment;
class Task;

/// How a text is given to a model, as in training (text/batches/text_batches.h).
enum class TextLayout {
  tokens,               // language modelling
  tokens_eos,           // classification by a decoder
  cls_tokens_sep,       // encoders; <mask> in the text becomes the mask token, if there is one
  source_and_target,    // encoder_decoder: tokens and eos; its decoder reads bos and tokens
  question_and_answer,  // a decoder that answers: tokens, eos and the answer's tokens in one sequence
};

/// What the rows of batches are.
enum class BatchRows {
  examples,              // each of its own length
  windows,               // of data.sequence_length tokens, so training.batch_tokens makes no sense
  windows_of_any_length  // the same, and the loss can be measured at other lengths
};

/// The parts of a vocabulary that every run of a task must have.
enum class VocabularyNeeds {
  nothing,
  tokenizer,
  tokenizer_and_labels,
  labels_and_pixels,
  pixels,
  tokenizer_and_pixels
};

/// From where the labels that Task::predict() chooses from come.
enum class LabelSource {
  vocabulary,  // they are those of the training
  options,     // PredictOptions::labels: any texts
};

struct TaskType : TypeInfo {
  /// The metrics besides "loss" that training.best_by may name.
  std::vector<Metric> best_by = {};
  /// The metric that ranks the rows of a comparison.
  Metric comparison = {.key = "loss", .label = "loss"};
  /// Replaces it if the tokenizer of a row changes texts; default: nothing replaces it.
  std::optional<Metric> lossy_comparison = std::nullopt;
  VocabularyNeeds needs = VocabularyNeeds::tokenizer;
  /// How its models write where the configuration says nothing.
  UsualSearch search = UsualSearch::greedy;
  BatchRows rows = BatchRows::examples;
  /// What Batch::tokens counts, for people who read rates and costs: "token", or "image".
  std::string unit = "token";
  /// What Task::predict() predicts from.
  PredictionInput predicts_from = PredictionInput::nothing;
  /// What it predicts.
  PredictionKind predicts = PredictionKind::labels;
  LabelSource labels = LabelSource::vocabulary;
  /// The task's key `problem` among its keys; null: it has none (problem_of() in tasks/problem.h).
  std::function<Problem&(TypeOptions& options)> problem = nullptr;

  bool needs_tokenizer() const {
    return needs == VocabularyNeeds::tokenizer || needs == VocabularyNeeds::tokenizer_and_labels ||
           needs == VocabularyNeeds::tokenizer_and_pixels;
  }
  bool needs_pixels() const {
    return needs == VocabularyNeeds::labels_and_pixels || needs == VocabularyNeeds::pixels ||
           needs == VocabularyNeeds::tokenizer_and_pixels;
  }
  bool needs_labels() const {
    return needs == VocabularyNeeds::tokenizer_and_labels || needs == VocabularyNeeds::labels_and_pixels;
  }
  /// The keys of best_by, "loss" first.
  std::vector<std::string> metric_names() const;
  /// Whether lower or higher values of the metric `key` are better; lower for the loss and for unknown keys.
  Better better(std::string_view key) const;

  /// Whether the vocabulary of an experiment must have special tokens such as eos.
  bool requires_special_tokens(const Experiment& experiment) const {
    if (!needs_tokenizer()) return false;
    return !needs_special_tokens || needs_special_tokens(experiment);
  }
  /// The answer for a task with a tokenizer; default: yes.
  std::function<bool(const Experiment& experiment)> needs_special_tokens = nullptr;
  /// Makes the task with a vocabulary. Missing parts of the vocabulary are made from the training data.
  std::function<std::unique_ptr<Task>(const Experiment& experiment, Vocabulary vocabulary)> make;
  /// Checks combinations of keys; default: no checks.
  std::function<void(const Experiment& experiment, const Complain& complain)> validate = nullptr;
  /// Task::purpose() for a vocabulary of `vocab_size` tokens, if it is known without the data; default: it is
  /// not.
  std::function<std::optional<ModelPurpose>(const Experiment& experiment, int64_t vocab_size)> purpose =
      nullptr;
  /// How a text is given to the model; default: the task has no texts.
  std::function<TextLayout(const Experiment& experiment)> layout = nullptr;
};

inline std::string_view what_lacks(const TaskType& type) {
  return type.make ? std::string_view() : "make, which builds the task";
}

/// The library's tasks (library_tasks.h) and added ones.
Registry<TaskType>& task_types();

/// The type of an experiment's task. Throws ConfigError if there is no type of that name.
const TaskType& task_type(const Experiment& experiment);

}  // namespace zoo

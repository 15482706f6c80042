#pragma once
// What a model is trained for: where its batches come from, how it is scored, what it shows.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batch_source.h"
#include "data/text/corpus.h"
#include "data/text/tokenizer.h"
#include "io/metrics_log.h"
#include "models/model.h"
#include "training/tasks/evaluation.h"
#include "training/tasks/experiment.h"

namespace zoo {

/// What a task learns from its training data before the model does, and what a run keeps of that beside the
/// weights.
struct Vocabulary {
  std::shared_ptr<const Tokenizer> tokenizer;  // RUN/tokenizer.*
  std::vector<std::string> labels;             // RUN/labels.json: names of the classes, if the task has any
};

/// What a model makes of one input, for a person to look at.
struct Sample {
  std::string input, output;
  std::optional<std::string> reference = {};  // what should have come out
};
/// One after the other, as RUN/samples.txt has them.
std::string to_text(const std::vector<Sample>& samples);

/// One task of one experiment. Corpora are read when they are first asked for, so a task is cheap to make for
/// a trained model, which may have to do with other texts than those it was trained on.
class Task {
 public:
  Task(Experiment experiment, Vocabulary vocabulary);
  virtual ~Task() = default;

  const Experiment& experiment() const { return experiment_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  const Tokenizer& tokenizer() const { return *vocabulary_.tokenizer; }
  virtual ModelPurpose purpose() const = 0;

  /// The batches of a split: shuffled for train, in the order of the text for the others. Throws DataError.
  BatchSource& batches(Split split);

  /// Scores `model` on a split without dropout. `loss` in nats per
  /// target, `perplexity` = exp(loss), `tokens` = targets; a task adds its own, e.g. `bits_per_byte` or
  /// `accuracy`, or of language modelling `word_perplexity` = exp(nats per word), where words stand between
  /// white space and each end of a line counts as one, as WikiText's does.
  virtual Metrics evaluate(Model& model, Split split, const EvaluationOptions& options = {});

  /// What `model` makes of some of the validation data, or of `inputs` if there are any: texts to continue,
  /// to answer, to classify, or with <mask> to fill. The same model gives the same samples. Throws DataError.
  virtual std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs = {}) = 0;

 protected:
  virtual std::unique_ptr<BatchSource> open(Split split) = 0;
  /// How this experiment wants the batches of `split`.
  BatchOptions batch_options(Split split) const;

 private:
  Experiment experiment_;
  Vocabulary vocabulary_;
  std::array<std::unique_ptr<BatchSource>, 3> sources_;  // by Split
};

/// The task of a run that has its vocabulary; what that lacks is made from the training data.
std::unique_ptr<Task> open_task(const Experiment& experiment, Vocabulary vocabulary);

/// The model of an experiment, initialised from the default generator, on the CPU. Throws ConfigError.
std::shared_ptr<Model> make_model(const Experiment& experiment, const Task& task);

}  // namespace zoo

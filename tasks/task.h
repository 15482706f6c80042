#pragma once
// A task: the source of the batches, the objective, the metrics and the samples of a model.

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/batch_source.h"
#include "data/images/box.h"
#include "data/splits.h"
#include "io/metrics_log.h"
#include "models/model.h"
#include "tasks/evaluation.h"
#include "tasks/experiment.h"
#include "tasks/objective.h"
#include "tasks/prediction.h"
#include "tasks/task_type.h"
#include "tasks/vocabulary.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// The output of a model for one input, for people to read.
struct Sample {
  std::string input, output;
  std::optional<std::string> reference = {};  // the right output
};
/// The samples one after the other, as in RUN/samples.txt.
std::string to_text(const std::vector<Sample>& samples);

/// Files of images as a model reads them.
struct ImageInputs {
  Batch batch = {};  // on the CPU, as the task's own batches, without targets
  /// The part of each picture that its image in the batch shows, in pixels of the picture.
  std::vector<Box> shown = {};
};

/// The task of an experiment. It reads a corpus at the first access, so it is cheap to make for a trained
/// model, which may be used on other texts than those of the training.
class Task {
 public:
  Task(Experiment experiment, Vocabulary vocabulary);
  virtual ~Task() = default;

  const Experiment& experiment() const { return experiment_; }
  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// Throws UsageError for a task without a tokenizer.
  const Tokenizer& tokenizer() const;
  virtual ModelPurpose purpose() const = 0;
  /// The loss that training minimises: the one that training.objective names, by default own_objective().
  std::shared_ptr<const Objective> objective() const;

  /// Remarks for people about the data that were read so far, and how they fit the model.
  const std::vector<std::string>& notes() const { return notes_; }

  /// A hash of the files of the training and validation data (text/corpus.h).
  virtual std::string hash_of_data() const;

  /// The batches of a split: shuffled for train, in the order of the text for the others. Throws DataError.
  BatchSource& batches(Split split);

  /// The best outputs before anything is learnt, (C). A task that predicts numbers has the mean of its
  /// training targets, once batches(Split::train) are open. Other tasks have none (undefined).
  const torch::Tensor& mean_target() const { return mean_target_; }

  /// Scores `model` on a split without dropout. The result always has `loss`; a task adds its own metrics,
  /// such as `perplexity`, `bits_per_byte`, `accuracy`, and training.metrics theirs. Throws UsageError if
  /// training.metrics need what the task does not say, or several processes share the evaluation.
  Metrics evaluate(Model& model, Split split, const EvaluationOptions& options = {});

  /// The outputs of `model` for some of the validation data, or for `inputs` if there are any: texts to
  /// continue, to answer, to classify, or with <mask> to fill. The same model gives the same samples. By
  /// default there are none. Throws DataError.
  virtual std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs = {});

  /// What `model` predicts for each input, in the order of the inputs. An input is what
  /// TaskType::predicts_from says; a task that sets it overrides this. Inputs that are too long are cut as in
  /// training. By default: throws UsageError. Throws DataError for an input that cannot be read,
  /// CheckpointError if the model's outputs are NaN.
  virtual std::vector<Prediction> predict(Model& model, const std::vector<std::string>& inputs,
                                          const PredictOptions& options = {});

  /// Whether predict() takes pairs of texts (PredictOptions::seconds). By default none.
  virtual PairUse pairs() const { return PairUse::none; }

  /// Reads images, PNG, JPEG or WebP, as predict() gives them to the model. A task that predicts from images
  /// overrides this. By default: throws UsageError. Throws DataError for a file that cannot be read.
  virtual ImageInputs read_inputs(const std::vector<std::string>& files) const;

 protected:
  virtual std::unique_ptr<BatchSource> open(Split split) = 0;
  /// evaluate() without training.metrics. By default the result is `loss`, the mean of the objective over the
  /// targets, and `targets`, their number.
  virtual Metrics measure(Model& model, Split split, const EvaluationOptions& options);
  /// The task's default objective: the cross-entropy of the batches' targets, or what the task's problem
  /// needs (LabelLoss), unless the task overrides this.
  virtual std::shared_ptr<const Objective> own_objective(const ObjectiveContext& context) const;
  /// The options of this experiment for the batches of `split`.
  BatchOptions batch_options(Split split) const;
  /// Sets mean_target(). `targets`: (N, C).
  void set_mean_target(const torch::Tensor& targets);
  /// Adds to notes().
  void add_notes(const std::vector<std::string>& notes) {
    notes_.insert(notes_.end(), notes.begin(), notes.end());
  }

 private:
  Experiment experiment_;
  Vocabulary vocabulary_;
  std::vector<std::string> notes_;
  torch::Tensor mean_target_;
  std::array<std::unique_ptr<BatchSource>, 3> sources_;  // by Split
};

/// The task of an experiment with this vocabulary. Missing parts of the vocabulary are made from the training
/// data.
std::unique_ptr<Task> task_with_vocabulary(const Experiment& experiment, Vocabulary vocabulary);

/// Sets the bias of the layer that gives the outputs to Task::mean_target(), if there is one: otherwise a
/// model needs many steps to find where the numbers lie.
void start_at_mean(const Task& task, Model& model);

/// The model of an experiment, with adapters if training.lora is set, on the CPU, initialised with the
/// default generator. Throws ConfigError.
std::shared_ptr<Model> initialized_model(const Experiment& experiment, const Task& task);
/// The same without initial weights: every tensor must be loaded before use.
std::shared_ptr<Model> uninitialized_model(const Experiment& experiment, const Task& task);

}  // namespace zoo

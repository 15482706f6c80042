#pragma once
// A trained model on the disk, as written by `zoo train`.

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <c10/core/Device.h>

#include "checkpoints/checkpoint.h"
#include "models/model.h"
#include "tasks/experiment.h"
#include "tasks/task.h"
#include "tasks/text/translation.h"

namespace zoo {

/// Whether `dir` holds a run: a directory with a config.yaml.
bool is_run(const std::filesystem::path& dir);

/// Whether a run in `state` has been trained as long as its configuration says.
bool is_finished(const TrainingState& state, const TrainingConfig& config);
/// The same for the newest checkpoint in `dir`; false if there is none.
bool is_finished(const std::filesystem::path& dir, const TrainingConfig& config);
/// Why training could not go on, if its loss was not a number; else nothing.
std::optional<std::string> failure_of(const std::filesystem::path& dir);

/// Reads RUN/config.yaml. Throws CheckpointError if the directory is not a run.
Experiment read_run_experiment(const std::filesystem::path& dir);

/// Reads RUN/tokenizer.*, RUN/labels.json and RUN/pixels.json, as a task of this type needs them. Throws
/// CheckpointError.
Vocabulary read_run_vocabulary(const std::filesystem::path& dir, const TaskType& type);
/// Writes them. Throws SystemError.
void write_run_vocabulary(const std::filesystem::path& dir, const Vocabulary& vocabulary);
/// Whether write_run_vocabulary() may make an entry of this name in the run's directory.
bool is_vocabulary_name(std::string_view name);

/// The file with the best weights of a run, RUN/model.safetensors or, with adapters, RUN/adapter.safetensors;
/// while there is none, the weights of the newest checkpoint. Throws CheckpointError.
std::filesystem::path run_weights(const std::filesystem::path& dir);

/// The weights of one of its checkpoints.
std::filesystem::path weights_in(const std::filesystem::path& checkpoint);

/// Writes a run that was not trained itself: configuration, vocabulary, and weights, with adapters also their
/// base. The directory appears when it is complete. Throws SystemError.
void write_run(const std::filesystem::path& dir, const Experiment& experiment, const Vocabulary& vocabulary,
               const Model& model);
/// The same with weights that `write_weights` writes into the directory.
void write_run(const std::filesystem::path& dir, const Experiment& experiment, const Vocabulary& vocabulary,
               const std::function<void(const std::filesystem::path& dir)>& write_weights);

/// How the weights of a model are stored where nobody names a format, generation.weights says nothing but
/// fp32, and the device is a GPU.
///   stored        fp32, except that models of others, which have no run, are stored as `fastest` says
///   by_precision  runs in what training.precision is on this GPU, too: for what reads much at once, which is
///                 then computed as in training; but models that fold proteins stay in fp32
///   fastest       bf16 if the GPU is fast with it (compute capability 8): for servers
enum class AutomaticWeights { stored, by_precision, fastest };

/// A format, or nothing and a rule in its place.
struct WeightChoice {
  WeightChoice(std::optional<WeightFormat> named, AutomaticWeights otherwise = AutomaticWeights::stored)
      : format(named), automatic(otherwise) {}
  WeightChoice(WeightFormat named) : format(named) {}
  WeightChoice(std::nullopt_t) : format() {}

  std::optional<WeightFormat> format;
  AutomaticWeights automatic = AutomaticWeights::stored;
};

/// Whether a model is a run, or a directory or a file of others.
enum class ModelOrigin { run, others };
/// The format that a choice means for a model, or the next one that is fast: fast_format().
WeightFormat chosen_format(const WeightChoice& choice, const Experiment& experiment, ModelOrigin origin,
                           c10::Device device);

/// A trained model that is opened for use: a run, or a directory in Hugging Face's form.
class Run {
 public:
  /// Opens it with the weights of run_weights(), or those of the directory. The model is in evaluation mode
  /// on `device`. Its weights are stored in chosen_format(weights). Throws CheckpointError: not a run, a file
  /// is missing or damaged, weights of another architecture, weights that are not finite.
  /// `base`: of an adapter, see open_stored_model().
  static Run open(const std::filesystem::path& dir, c10::Device device = c10::kCPU,
                  const WeightChoice& weights = WeightFormat::fp32, const std::filesystem::path& base = {});

  const std::filesystem::path& dir() const { return dir_; }
  const Experiment& experiment() const { return task_->experiment(); }
  const Tokenizer& tokenizer() const { return task_->tokenizer(); }
  /// Names of the classes; empty if the task has none.
  const std::vector<std::string>& labels() const { return task_->vocabulary().labels; }
  Task& task() const { return *task_; }
  Model& model() const { return *model_; }
  /// Scores the model on a split of the run's data, or on `files` if there are any (paths as in `data:`;
  /// prefixes for text_to_text). Throws DataError; CheckpointError if the loss is not finite.
  Metrics evaluate(Split split, const std::vector<std::string>& files = {},
                   const EvaluationOptions& options = {}) const;
  /// The first batches of the same data, at most `most`, on the CPU.
  std::vector<Batch> batches(Split split, const std::vector<std::string>& files, int64_t most) const;
  /// Translates the sources of the same data, for BLEU and chrF. Only for the task text_to_text. Throws as
  /// zoo::translate().
  Translations translate(Split split, const std::vector<std::string>& files = {},
                         const TranslateOptions& options = {}) const;
  /// The file that the weights came from.
  const std::filesystem::path& weights() const { return weights_; }
  /// How they are stored.
  WeightFormat weight_format() const { return format_; }

 private:
  Run() = default;
  std::filesystem::path dir_, weights_;
  WeightFormat format_ = WeightFormat::fp32;
  std::unique_ptr<Task> task_;
  std::shared_ptr<Model> model_;
};

/// Throws UsageError, which names --draft, unless the tokens of both mean the same texts.
void require_same_vocabulary(const Run& draft, const Run& run);

}  // namespace zoo

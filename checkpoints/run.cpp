#include "checkpoints/run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/base_weights.h"
#include "checkpoints/stored_model.h"
#include "data/tables.h"
#include "data/usual_columns.h"
#include "interop/foreign_files.h"
#include "interop/foreign_kinds.h"
#include "io/files.h"
#include "io/json_document.h"
#include "io/safetensors.h"
#include "models/lora.h"
#include "models/precision.h"
#include "tasks/structures/folded_chain.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

// The entries of a run's directory that hold its vocabulary, besides the tokenizer's.
constexpr const char *kLabelsFile = "labels.json", *kPixelsFile = "pixels.json",
                     *kDenseFile = "dense.safetensors",  // the dense maps of sentence vectors
                         *kForeignDirectory = "hub";     // small files of the model that this one came from

std::vector<std::string> read_labels(const fs::path& path) {
  try {
    return parse_json(read_json_text(path)).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    throw CheckpointError(fmt::format("{}: damaged: not a list of names in JSON", path.string()));
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("{}: damaged: {}", path.string(), error.what()));
  }
}

PixelStatistics read_pixels(const fs::path& path) {
  try {
    const auto json = parse_json(read_json_text(path));
    return {.mean = json.at("mean").get<std::vector<double>>(),
            .deviation = json.at("deviation").get<std::vector<double>>()};
  } catch (const nlohmann::json::exception&) {
    throw CheckpointError(fmt::format("{}: damaged: not mean and deviation in JSON", path.string()));
  } catch (const DataError& error) {
    throw CheckpointError(fmt::format("{}: damaged: {}", path.string(), error.what()));
  }
}

/// Makes `data` name the columns of a table of examples for `task`.
void follow_columns(const std::vector<std::string>& header, const Task& task, DataConfig& data) {
  // A model that may read pairs reads them where a table has them.
  const auto pair = task.pairs() == PairUse::possible ? find_pair_columns(header) : std::nullopt;
  if (pair) {
    data.text_column = {pair->first};
    data.pair_column = {pair->second};
    if (pair->label) data.label_column = *pair->label;
    return;
  }
  const auto& type = task_type(task.experiment());
  const bool labels_texts = type.needs_labels() && type.predicts_from == PredictionInput::text;
  if (!labels_texts || std::ranges::find(header, data.label_column) != header.end()) return;
  if (const auto columns = find_labelled_columns(header); columns && columns->second.empty()) {
    data.text_column = {columns->text};
    data.label_column = columns->label;
  }
}

/// The same task with `files` as its test data.
std::unique_ptr<Task> task_over(const std::vector<std::string>& files, const Task& task) {
  Experiment experiment = task.experiment();
  auto& data = experiment.data;
  data.test.assign(files.begin(), files.end());
  if (is_table(files.front()))
    follow_columns(open_table(data_path(data.test.front()))->columns(), task, data);
  return task_with_vocabulary(experiment, task.vocabulary());
}

}  // namespace

bool is_run(const fs::path& dir) { return has_file(dir / "config.yaml"); }

bool is_finished(const TrainingState& state, const TrainingConfig& config) {
  return state.finished &&
         (state.step >= config.steps || (config.max_seconds && state.seconds >= *config.max_seconds) ||
          config.is_out_of_patience(state.step, state.best_step));
}

bool is_finished(const fs::path& dir, const TrainingConfig& config) {
  const auto checkpoint = newest_checkpoint(dir);
  return checkpoint && is_finished(read_training_state(*checkpoint), config);
}

std::optional<std::string> failure_of(const fs::path& dir) {
  if (!is_there(dir / kFailureFile)) return std::nullopt;
  auto text = read_file(dir / kFailureFile, Follow::nothing);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Experiment read_run_experiment(const fs::path& dir) {
  if (!is_run(dir)) {
    std::error_code ignored;
    if (const auto other = other_kind_of(dir))
      throw CheckpointError(
          fmt::format("{}: neither a run nor a model that is read: {}", dir.string(), *other));
    throw CheckpointError(fs::exists(dir, ignored)
                              ? fmt::format("{}: not a run: there is no config.yaml in it", dir.string())
                              : fmt::format("{}: no such run; {}", dir.string(), how_to_get_model(dir)));
  }
  return load_complete_experiment(dir / "config.yaml");
}

Vocabulary read_run_vocabulary(const fs::path& dir, const TaskType& type) {
  Vocabulary vocabulary;
  if (type.needs_tokenizer() || is_there(dir / "tokenizer.json")) vocabulary.tokenizer = load_tokenizer(dir);
  if (is_there(dir / kLabelsFile)) vocabulary.labels = read_labels(dir / kLabelsFile);
  if (is_there(dir / kPixelsFile)) vocabulary.pixels = read_pixels(dir / kPixelsFile);
  if (is_there(dir / kDenseFile)) {
    const SafetensorsFile file(dir / kDenseFile);
    for (const auto& name : file.names()) vocabulary.dense.emplace(name, file.tensor(name).to(torch::kFloat));
  }
  if (has_subdirectory(dir / kForeignDirectory))
    vocabulary.foreign_files = other_small_files(dir / kForeignDirectory);
  return vocabulary;
}

void write_run_vocabulary(const fs::path& dir, const Vocabulary& vocabulary) {
  if (vocabulary.tokenizer) vocabulary.tokenizer->save(dir);
  if (!vocabulary.foreign_files.empty()) make_subdirectory(dir / kForeignDirectory);
  for (const auto& [name, content] : vocabulary.foreign_files) {
    make_subdirectory((dir / kForeignDirectory / name).parent_path());
    write_file_atomically(dir / kForeignDirectory / name, content);
  }
  if (!vocabulary.dense.empty()) save_safetensors(dir / kDenseFile, vocabulary.dense);
  if (!vocabulary.labels.empty()) {
    write_file_atomically(dir / kLabelsFile, json_text(nlohmann::json(vocabulary.labels), 2) + "\n");
  }
  if (vocabulary.pixels) {
    const nlohmann::ordered_json pixels{{"mean", vocabulary.pixels->mean},
                                        {"deviation", vocabulary.pixels->deviation}};
    write_file_atomically(dir / kPixelsFile, json_text(pixels, 2) + "\n");
  }
}

bool is_vocabulary_name(std::string_view name) {
  return name.starts_with("tokenizer.") || name == kLabelsFile || name == kPixelsFile || name == kDenseFile ||
         name == kForeignDirectory;
}

namespace {

/// The file of weights in a run or a checkpoint.
std::optional<fs::path> find_weights(const fs::path& dir) {
  for (const char* name : {"model.safetensors", "adapter.safetensors"}) {
    if (is_there(dir / name)) return dir / name;
  }
  return std::nullopt;
}

}  // namespace

fs::path weights_in(const fs::path& checkpoint) {
  return find_weights(checkpoint).value_or(checkpoint / "model.safetensors");
}

fs::path run_weights(const fs::path& dir) {
  if (auto weights = find_weights(dir)) return *weights;
  if (const auto checkpoint = newest_checkpoint(dir)) return weights_in(*checkpoint);
  throw CheckpointError(
      fmt::format("{}: no weights yet: neither model.safetensors nor a checkpoint", dir.string()));
}

void write_run(const fs::path& dir, const Experiment& experiment, const Vocabulary& vocabulary,
               const Model& model) {
  write_run(dir, experiment, vocabulary, [&](const fs::path& temporary) {
    const auto base = has_adapters(model) ? save_base(temporary, model) : "";
    save_weights(temporary / weights_name(model), model, belongs_to(base));
  });
}

void write_run(const fs::path& dir, const Experiment& experiment, const Vocabulary& vocabulary,
               const std::function<void(const fs::path& dir)>& write_weights) {
  if (dir.has_parent_path()) make_directory(dir.parent_path());
  write_directory_atomically(dir, [&](const fs::path& temporary) {
    write_weights(temporary);
    write_run_vocabulary(temporary, vocabulary);
    write_file_atomically(temporary / "config.yaml", dump_config(experiment));
  });
}

WeightFormat chosen_format(const WeightChoice& choice, const Experiment& experiment, ModelOrigin origin,
                           c10::Device device) {
  const auto configured = experiment.generation.weights;
  if (choice.format) return fast_format(*choice.format, device);
  if (device.is_cpu() || configured != WeightFormat::fp32) return fast_format(configured, device);
  const bool is_fastest = origin == ModelOrigin::others || choice.automatic == AutomaticWeights::fastest;
  if (folds(experiment) || (!is_fastest && choice.automatic == AutomaticWeights::stored)) return configured;
  const auto precision = is_fastest ? Precision::automatic : experiment.training.precision;
  switch (resolve(precision, device, experiment.model.d_model)) {
    case Precision::bf16:
      return WeightFormat::bf16;
    case Precision::fp16:
      return WeightFormat::fp16;
    case Precision::automatic:
    case Precision::fp32:
      break;
  }
  return configured;
}

Run Run::open(const fs::path& dir, c10::Device device, const WeightChoice& weights, const fs::path& base) {
  auto stored = open_stored_model(dir, base);
  Run run;
  run.dir_ = run_of_checkpoint(dir).value_or(dir);
  run.weights_ = stored.tensors->place();
  run.task_ = std::move(stored.task);
  run.model_ = uninitialized_model(run.experiment(), *run.task_);
  const auto origin = is_run(run.dir_) ? ModelOrigin::run : ModelOrigin::others;
  run.format_ = chosen_format(weights, run.experiment(), origin, device);
  if (device.is_cpu()) {
    load_weights(*stored.tensors, *run.model_, run.format_);
  } else {
    load_weights(*stored.tensors, *run.model_);
    run.model_->to(device);
    store_weights(*run.model_, run.format_);
  }
  run.model_->eval();
  return run;
}

Metrics Run::evaluate(Split split, const std::vector<std::string>& files,
                      const EvaluationOptions& options) const {
  auto metrics = files.empty() ? task_->evaluate(*model_, split, options)
                               : task_over(files, *task_)->evaluate(*model_, Split::test, options);
  if (const double loss = metrics.at("loss"); !std::isfinite(loss)) {
    throw CheckpointError(
        fmt::format("{}: the loss of these weights is {}: the training diverged; take an earlier checkpoint",
                    weights_.string(), loss));
  }
  return metrics;
}

std::vector<Batch> Run::batches(Split split, const std::vector<std::string>& files, int64_t most) const {
  const auto other = files.empty() ? nullptr : task_over(files, *task_);
  auto& source = other ? other->batches(Split::test) : task_->batches(split);
  std::vector<Batch> batches;
  for (int64_t i = 0; i < std::min(source.n_batches(0), most); ++i) batches.push_back(source.batch(0, i));
  return batches;
}

Translations Run::translate(Split split, const std::vector<std::string>& files,
                            const TranslateOptions& options) const {
  if (files.empty()) return zoo::translate(*model_, *task_, split, options);
  return zoo::translate(*model_, *task_over(files, *task_), Split::test, options);
}

void require_same_vocabulary(const Run& draft, const Run& run) {
  if (draft.task().vocabulary().tokenizer) {
    const auto &ours = run.tokenizer(), &theirs = draft.tokenizer();
    bool same = ours.vocab_size() == theirs.vocab_size();
    for (int64_t id = 0; same && id < ours.vocab_size(); ++id) same = ours.label(id) == theirs.label(id);
    if (same) return;
  }
  throw UsageError("--draft: this run has another vocabulary than the model, so its tokens mean other texts");
}

}  // namespace zoo

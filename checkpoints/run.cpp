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
#include "io/files.h"
#include "io/json_document.h"
#include "models/families/families.h"
#include "models/families/model_cost.h"
#include "models/lora.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

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

/// Throws CheckpointError if the run lacks what a classifier needs, or if that does not fit its images.
void check_labels(const fs::path& dir, const Experiment& experiment, const Vocabulary& vocabulary) {
  const auto& type = task_type(experiment);
  if (type.needs_labels() && vocabulary.labels.empty()) {
    throw CheckpointError(fmt::format("{}: missing: a classifier cannot be used without its labels",
                                      (dir / "labels.json").string()));
  }
  auto sorted = vocabulary.labels;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    throw CheckpointError(fmt::format("{}: damaged: two classes have the name '{}'",
                                      (dir / "labels.json").string(), excerpt(*twice)));
  }
  if (type.needs != VocabularyNeeds::labels_and_pixels && type.needs != VocabularyNeeds::pixels) return;
  const auto path = dir / "pixels.json";
  if (!vocabulary.pixels)
    throw CheckpointError(fmt::format("{}: missing: images cannot be normalised without it", path.string()));
  const auto n_channels = static_cast<size_t>(experiment.data.images.channels);
  const auto& [mean, deviation] = *vocabulary.pixels;
  const bool fits = mean.size() == n_channels && deviation.size() == n_channels &&
                    std::ranges::all_of(mean, [](double x) { return std::isfinite(x); }) &&
                    std::ranges::all_of(deviation, [](double x) { return std::isfinite(x) && x > 0; });
  if (!fits) {
    throw CheckpointError(
        fmt::format("{}: damaged: not a mean and a positive deviation for each of {} channels", path.string(),
                    n_channels));
  }
}

/// Throws CheckpointError if the vocabulary lacks a special token that stands in every text of the task.
void check_special_tokens(const fs::path& dir, const Task& task) {
  const auto& type = task_type(task.experiment());
  if (!type.layout || !task.vocabulary().tokenizer) return;
  const auto& special = task.tokenizer().special();
  const auto require = [&](int64_t id, std::string_view name) {
    if (id >= 0) return;
    throw CheckpointError(fmt::format("{}: the vocabulary has no {}, which the task {} needs",
                                      (dir / "tokenizer.json").string(), name, type.name));
  };
  switch (type.layout(task.experiment())) {
    case TextLayout::tokens:
      break;
    case TextLayout::source_and_target:
      require(special.bos, "<bos>");
      [[fallthrough]];
    case TextLayout::tokens_eos:
    case TextLayout::question_and_answer:
      require(special.pad, "<pad>");
      require(special.eos, "<eos>");
      break;
    case TextLayout::cls_tokens_sep:
      require(special.cls, "<cls>");
      require(special.sep, "<sep>");
      break;
  }
}

/// The same task with `files` as its test data.
std::unique_ptr<Task> task_over(const std::vector<std::string>& files, const Task& task) {
  Experiment experiment = task.experiment();
  experiment.data.test.assign(files.begin(), files.end());
  return open_task(experiment, task.vocabulary());
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
    throw CheckpointError(fs::exists(dir, ignored)
                              ? fmt::format("{}: not a run: there is no config.yaml in it", dir.string())
                              : fmt::format("{}: no such run; zoo train makes one", dir.string()));
  }
  return load_complete_experiment(dir / "config.yaml");
}

Vocabulary read_run_vocabulary(const fs::path& dir, const TaskType& type) {
  Vocabulary vocabulary;
  if (type.needs_tokenizer() || is_there(dir / "tokenizer.json")) vocabulary.tokenizer = load_tokenizer(dir);
  if (is_there(dir / "labels.json")) vocabulary.labels = read_labels(dir / "labels.json");
  if (is_there(dir / "pixels.json")) vocabulary.pixels = read_pixels(dir / "pixels.json");
  return vocabulary;
}

void write_run_vocabulary(const fs::path& dir, const Vocabulary& vocabulary) {
  if (vocabulary.tokenizer) vocabulary.tokenizer->save(dir);
  if (!vocabulary.labels.empty()) {
    write_file_atomically(dir / "labels.json", nlohmann::json(vocabulary.labels).dump(2) + "\n");
  }
  if (vocabulary.pixels) {
    const nlohmann::ordered_json pixels{{"mean", vocabulary.pixels->mean},
                                        {"deviation", vocabulary.pixels->deviation}};
    write_file_atomically(dir / "pixels.json", pixels.dump(2) + "\n");
  }
}

fs::path run_weights(const fs::path& dir) {
  constexpr auto names = std::to_array<const char*>({"model.safetensors", "adapter.safetensors"});
  for (const char* name : names) {
    if (is_there(dir / name)) return dir / name;
  }
  if (const auto checkpoint = newest_checkpoint(dir)) {
    for (const char* name : names) {
      if (is_there(*checkpoint / name)) return *checkpoint / name;
    }
    return *checkpoint / names.front();
  }
  throw CheckpointError(
      fmt::format("{}: no weights yet: neither model.safetensors nor a checkpoint", dir.string()));
}

void write_run(const fs::path& dir, const Experiment& experiment, const Vocabulary& vocabulary,
               const Model& model) {
  if (dir.has_parent_path()) make_directory(dir.parent_path());
  write_directory_atomically(dir, [&](const fs::path& temporary) {
    const auto base = has_adapters(model) ? save_base(temporary, model) : "";
    save_weights(temporary / weights_name(model), model, belongs_to(base));
    write_run_vocabulary(temporary, vocabulary);
    write_file_atomically(temporary / "config.yaml", dump_config(experiment));
  });
}

void check_model_size(const fs::path& path, const Experiment& experiment, const Task& task) {
  auto weights = path;
  if (experiment.training.lora) {
    // Nearly all weights are in the base: RUN/base.safetensors.
    const auto dir = path.parent_path();
    weights = (step_of(dir) ? dir.parent_path().parent_path() : dir) / kBaseFile;
  }
  const SafetensorsFile file(weights);
  // A model that is little larger than its file is built, and then the first tensor that differs is named.
  constexpr double spare = 1e6;
  constexpr int64_t spare_layers = 64;
  const auto stored = static_cast<double>(file.n_elements());
  const double wanted = parameter_count(experiment.model, task.purpose());
  const auto n_layers = std::max(experiment.model.n_layers, experiment.model.decoder_layers());
  if (wanted <= 2 * stored + spare && n_layers <= static_cast<int64_t>(file.n_tensors()) + spare_layers)
    return;
  throw CheckpointError(
      fmt::format("{}: of another architecture: the configuration describes a model with {} layers and "
                  "{:.3g} parameters, but the file has {} tensors with {:.3g}",
                  weights.string(), n_layers, wanted, file.n_tensors(), stored));
}

Run Run::open(const fs::path& dir, c10::Device device) {
  const auto experiment = read_run_experiment(dir);
  Run run;
  run.dir_ = dir;
  auto vocabulary = read_run_vocabulary(dir, task_type(experiment));
  check_labels(dir, experiment, vocabulary);
  run.task_ = open_task(experiment, std::move(vocabulary));
  check_special_tokens(dir, *run.task_);
  run.weights_ = run_weights(dir);
  check_model_size(run.weights_, experiment, *run.task_);
  run.model_ = build_model(experiment, *run.task_);
  load_run_weights(dir, run.weights_, *run.model_, BaseCheck::none);
  run.model_->to(device);
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

Translations Run::translate(Split split, const std::vector<std::string>& files,
                            const TranslateOptions& options) const {
  if (files.empty()) return zoo::translate(*model_, *task_, split, options);
  return zoo::translate(*model_, *task_over(files, *task_), Split::test, options);
}

}  // namespace zoo

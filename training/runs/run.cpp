#include "training/runs/run.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> read_labels(const fs::path& path) {
  try {
    return nlohmann::json::parse(read_file(path, Follow::nothing)).get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception&) {
    throw CheckpointError(fmt::format("{}: damaged: not a list of names in JSON", path.string()));
  }
}

/// The same task with `files` as its test data.
std::unique_ptr<Task> task_over(const std::vector<std::string>& files, const Task& task) {
  Experiment experiment = task.experiment();
  experiment.data.test = files;
  return open_task(experiment, task.vocabulary());
}

}  // namespace

bool is_run(const fs::path& dir) {
  std::error_code ignored;
  return fs::is_regular_file(dir / "config.yaml", ignored);
}

bool is_finished(const TrainingState& state, const TrainingConfig& config) {
  return state.finished &&
         (state.step >= config.steps || (config.max_seconds && state.seconds >= *config.max_seconds));
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
  if (type.needs != VocabularyNeeds::nothing || is_there(dir / "tokenizer.json"))
    vocabulary.tokenizer = load_tokenizer(dir);
  if (is_there(dir / "labels.json")) vocabulary.labels = read_labels(dir / "labels.json");
  return vocabulary;
}

void write_run_vocabulary(const fs::path& dir, const Vocabulary& vocabulary) {
  if (vocabulary.tokenizer) vocabulary.tokenizer->save(dir);
  if (!vocabulary.labels.empty()) {
    write_file_atomically(dir / "labels.json", nlohmann::json(vocabulary.labels).dump(2) + "\n");
  }
}

fs::path run_weights(const fs::path& dir) {
  fs::path best = dir / "model.safetensors";
  if (is_there(best)) return best;
  if (const auto checkpoint = newest_checkpoint(dir)) return *checkpoint / "model.safetensors";
  throw CheckpointError(
      fmt::format("{}: no weights yet: neither model.safetensors nor a checkpoint", dir.string()));
}

Run Run::open(const fs::path& dir, c10::Device device) {
  const auto experiment = read_run_experiment(dir);
  Run run;
  run.dir_ = dir;
  auto vocabulary = read_run_vocabulary(dir, task_type(experiment));
  if (task_type(experiment).needs == VocabularyNeeds::tokenizer_and_labels && vocabulary.labels.empty()) {
    throw CheckpointError(fmt::format("{}: missing: a classifier cannot be used without its labels",
                                      (dir / "labels.json").string()));
  }
  run.task_ = open_task(experiment, std::move(vocabulary));
  run.weights_ = run_weights(dir);
  run.model_ = make_model(experiment, *run.task_);
  load_tensors(run.weights_, named_tensors(*run.model_));
  run.model_->to(device);
  run.model_->eval();
  return run;
}

Metrics Run::evaluate(Split split, const std::vector<std::string>& files) const {
  if (files.empty()) return task_->evaluate(*model_, split);
  return task_over(files, *task_)->evaluate(*model_, Split::test);
}

Translations Run::translate(Split split, const std::vector<std::string>& files,
                            const TranslateOptions& options) const {
  if (files.empty()) return zoo::translate(*model_, *task_, split, options);
  return zoo::translate(*model_, *task_over(files, *task_), Split::test, options);
}

}  // namespace zoo

#include "checkpoints/run_list.h"

#include <algorithm>
#include <map>
#include <set>
#include <system_error>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "checkpoints/run_directory.h"
#include "io/file_lock.h"
#include "io/files.h"
#include "io/metrics_log.h"
#include "io/safetensors.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 3;

/// A run in the list, and its configuration.
struct Listed {
  RunSummary summary;
  std::vector<ConfigValue> values = {};
};

std::string first_line(const std::string& text) { return printable(text.substr(0, text.find('\n'))); }

/// Directories that are links are left out, so that no circle is followed.
void find_runs(const fs::path& dir, int depth, std::vector<fs::path>& found) {
  if (is_run(dir)) {
    found.push_back(dir);
    return;
  }
  if (depth == kDeepest) return;
  std::error_code problem;
  for (fs::directory_iterator at(dir, problem), end; !problem && at != end; at.increment(problem)) {
    std::error_code ignored;
    if (at->is_directory(ignored) && !at->is_symlink(ignored)) find_runs(at->path(), depth + 1, found);
  }
}

/// When the newest of the files that a training writes was written.
fs::file_time_type changed_at(const fs::path& run) {
  auto newest = fs::file_time_type::min();
  for (const char* const name :
       {"config.yaml", "metrics.jsonl", "model.safetensors", "adapter.safetensors"}) {
    std::error_code problem;
    const auto time = fs::last_write_time(run / name, problem);
    if (!problem) newest = std::max(newest, time);
  }
  return newest;
}

/// The step and the seconds of the last row of metrics, which is newer than the last checkpoint while a run
/// is trained.
void read_last_row(const fs::path& run, RunSummary& summary) {
  const auto row = last_metrics_row(run);
  if (!row.is_object() || !row.contains("step") || !row["step"].is_number_integer()) return;
  summary.step = std::max(summary.step, row["step"].get<int64_t>());
  if (row.contains("seconds") && row["seconds"].is_number())
    summary.seconds = std::max(summary.seconds, row["seconds"].get<double>());
}

/// How far the training is; `config` has the steps that are to be done.
void read_progress(const fs::path& run, const TrainingConfig& config, RunSummary& summary) {
  summary.steps = config.steps;
  summary.metric = config.kept_metric();
  const auto checkpoint = newest_checkpoint(run);
  if (checkpoint) {
    const auto state = read_training_state(*checkpoint);
    summary.step = state.step;
    summary.seconds = state.seconds;
    summary.best = state.best_score;
    summary.best_step = state.best_step;
    summary.activity = is_finished(state, config) ? RunActivity::finished : RunActivity::stopped;
  } else {
    const bool has_begun = is_there(run / kNoCheckpointYet) || is_there(run / "metrics.jsonl");
    summary.activity = has_begun ? RunActivity::stopped : RunActivity::made;
  }
  if (const auto failure = failure_of(run)) {
    summary.activity = RunActivity::failed;
    summary.problem = first_line(*failure);
  }
  if (FileLock::is_held(run / kLockFile)) {
    summary.activity = RunActivity::running;
    read_last_row(run, summary);
  }
}

Listed listed(const fs::path& run, const fs::path& below) {
  Listed result{.summary = {.dir = run.lexically_relative(below), .changed = changed_at(run)}};
  auto& summary = result.summary;
  try {
    const auto experiment = read_run_experiment(run);
    summary.name = experiment.name;
    summary.task = experiment.task.type;
    summary.architecture = experiment.model.architecture.type;
    read_progress(run, experiment.training, summary);
    result.values = flatten(experiment);
    try {
      summary.parameters = n_elements(SafetensorsFile(run_weights(run)));
    } catch (const CheckpointError&) {  // there are none yet
    }
  } catch (const Error& error) {
    summary.activity = RunActivity::damaged;
    summary.problem = first_line(error.what());
  }
  return result;
}

/// Whether a key says how a run learns, and not where things are.
bool is_compared(const std::string& key) {
  return key != "name" && key != "task" && key != "init_from" && !key.starts_with("data.train") &&
         !key.starts_with("data.valid") && !key.starts_with("data.test");
}

/// Sets `differs` of runs of one task.
void find_differences(const std::vector<Listed*>& runs) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, size_t> n_runs;
  for (const auto* const run : runs) {
    for (const auto& [key, value] : run->values) {
      values[key].insert(value);
      ++n_runs[key];
    }
  }
  for (auto* const run : runs) {
    for (const auto& [key, value] : run->values) {
      // A key that some families lack is not counted: the architecture says that.
      if (is_compared(key) && values[key].size() > 1 && n_runs[key] == runs.size())
        run->summary.differs.emplace_back(key, value);
    }
  }
}

}  // namespace

std::vector<RunSummary> list_runs(const fs::path& dir) {
  std::error_code problem;
  if (!fs::is_directory(dir, problem))
    throw UsageError(fmt::format("{}: there is no such directory", dir.string()));
  std::vector<fs::path> found;
  find_runs(dir, 0, found);
  std::vector<Listed> runs;
  for (const auto& run : found) runs.push_back(listed(run, dir));
  std::map<std::string, std::vector<Listed*>> by_task;
  for (auto& run : runs) {
    if (run.summary.activity != RunActivity::damaged) by_task[run.summary.task].push_back(&run);
  }
  for (const auto& [task, of_task] : by_task) find_differences(of_task);
  std::vector<RunSummary> result;
  for (auto& run : runs) result.push_back(std::move(run.summary));
  std::ranges::sort(result, [](const RunSummary& a, const RunSummary& b) {
    return std::tie(b.changed, a.dir) < std::tie(a.changed, b.dir);
  });
  return result;
}

}  // namespace zoo

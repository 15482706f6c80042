#include "checkpoints/fork_run.h"

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "checkpoints/base_weights.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "checkpoints/run_directory.h"
#include "io/files.h"
#include "io/paths.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

fs::path checkpoint_at(const fs::path& run, int64_t step) {
  std::vector<int64_t> steps;
  for (const auto& checkpoint : checkpoints_of(run)) {
    const auto own = step_of(checkpoint);
    if (own == step) return checkpoint;
    if (own) steps.push_back(*own);
  }
  std::ranges::sort(steps);
  throw UsageError(fmt::format("{}: it has no checkpoint of step {}{}; training.keep_checkpoints keeps more",
                               run.string(), step,
                               steps.empty() ? "" : fmt::format(", but of {}", fmt::join(steps, ", "))));
}

/// Throws CheckpointError for links: a stranger's run must not name files elsewhere.
void copy_entry(const fs::path& from, const fs::path& to) {
  std::error_code problem;
  if (fs::is_symlink(from, problem))
    throw CheckpointError(fmt::format("{}: a link, not a file or a directory", from.string()));
  if (fs::is_directory(from, problem)) {
    make_directory(to);
    for (fs::directory_iterator at(from, problem), end; !problem && at != end; at.increment(problem))
      copy_entry(at->path(), to / at->path().filename());
  } else {
    fs::copy_file(from, to, problem);
  }
  if (problem) throw SystemError(fmt::format("cannot copy '{}': {}", from.string(), problem.message()));
}

/// Whether a fork needs the entry of a run: configuration, vocabulary, base, what was logged.
bool is_copied(const std::string& name) {
  return name == "config.yaml" || name == "metrics.jsonl" || name == "samples.txt" || name == kBaseFile ||
         is_vocabulary_name(name);
}

/// Whether the best weights of the run are those that it had at the checkpoint.
bool has_best_of(const fs::path& run, const TrainingState& at_checkpoint) {
  const auto newest = newest_checkpoint(run);
  return newest && at_checkpoint.best_score &&
         read_training_state(*newest).best_step == at_checkpoint.best_step;
}

}  // namespace

void fork_run(const fs::path& run, int64_t step, const Experiment& wanted, const fs::path& to,
              ExistingFork existing) {
  const auto checkpoint = checkpoint_at(run, step);
  check_can_resume_as(run, wanted);
  const auto from = resolved(run), place = resolved(to);
  if (is_within(place, from) || is_within(from, place))
    throw UsageError(fmt::format(
        "{}: the run that is left is there; name another directory with TrainOptions::run_dir", to.string()));
  if (existing == ExistingFork::refuse && is_there(to))
    throw UsageError(
        fmt::format("{}: this run exists; ExistingRun::resume goes on with it, ExistingRun::replace "
                    "replaces it",
                    to.string()));
  // Refuses what is no run, and keeps others from training the run that is replaced.
  std::optional<RunDirectory> replaced;
  if (is_there(to)) replaced.emplace(wanted, to, ExistingRun::replace);
  auto state = read_training_state(checkpoint);
  const bool keeps_best = has_best_of(run, state);
  if (to.has_parent_path()) make_directory(to.parent_path());
  write_directory_atomically(to, [&](const fs::path& temporary) {
    std::error_code problem;
    for (fs::directory_iterator at(run, problem), end; !problem && at != end; at.increment(problem)) {
      const auto name = at->path().filename();
      const bool is_best = name == "model.safetensors" || name == "adapter.safetensors";
      if (is_copied(name) || (is_best && keeps_best)) copy_entry(at->path(), temporary / name);
    }
    if (problem) throw SystemError(fmt::format("cannot read '{}': {}", run.string(), problem.message()));
    const auto own = temporary / "checkpoints" / checkpoint.filename();
    make_directory(own);
    copy_entry(checkpoint, own);
    replace_symlink(checkpoint.filename(), temporary / "checkpoints/last");
    if (keeps_best) return;
    state.best_score.reset();
    state.best_step = step;
    write_training_state(own, state);
  });
}

}  // namespace zoo

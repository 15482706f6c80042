#include "checkpoints/fork.h"

#include <algorithm>
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

/// Whether the best weights of the run are those that it had at the checkpoint, if it had any.
bool has_best_of(const fs::path& run, const TrainingState& at_checkpoint) {
  const auto newest = newest_checkpoint(run);
  return !at_checkpoint.best_score ||
         (newest && read_training_state(*newest).best_step == at_checkpoint.best_step);
}

}  // namespace

Fork::Fork(const ForkPoint& point, const Experiment& wanted, const fs::path& to) : run_(point.run) {
  check_can_resume_as(run_, wanted);
  checkpoint_ = checkpoint_at(run_, point.step);
  const auto from = resolved(run_), place = resolved(to);
  if (is_within(place, from) || is_within(from, place))
    throw UsageError(fmt::format(
        "{}: the run that is left is there; name another directory with TrainOptions::run_dir", to.string()));
  has_best_ = has_best_of(run_, read_training_state(checkpoint_));
}

void Fork::copy_to(const fs::path& to) const {
  auto state = read_training_state(checkpoint_);
  std::vector<fs::path> names = {"metrics.jsonl", "samples.txt", kBaseFile};
  if (has_best_ && state.best_score) names.push_back(run_weights(run_).filename());
  for (const auto& name : names) {
    if (is_there(run_ / name)) copy_entry(run_ / name, to / name);
  }
  forget_lost_best(state);
  // Without a checkpoint, a copy that is not complete would start over.
  write_directory_atomically(to / "checkpoints", [&](const fs::path& temporary) {
    const auto own = temporary / checkpoint_.filename();
    copy_entry(checkpoint_, own);
    write_training_state(own, state);
    replace_symlink(checkpoint_.filename(), temporary / "last");
  });
}

void Fork::forget_lost_best(TrainingState& state) const {
  if (has_best_) return;
  state.best_score.reset();
  state.best_step = state.step;
}

bool lacks_best(const TrainingState& state) { return !state.best_score && state.best_step > 0; }

}  // namespace zoo

#include "checkpoints/average_run.h"

#include <algorithm>

#include <fmt/format.h>
#include <torch/utils.h>

#include "base/error.h"
#include "checkpoints/base_weights.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "checkpoints/weight_average.h"
#include "io/files.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

/// The path of the new run. Throws UsageError if it exists.
fs::path place_for(const fs::path& run_dir, const fs::path& out) {
  fs::path place = out;
  if (place.empty()) {
    place = run_dir.has_filename() ? run_dir : run_dir.parent_path();
    place += "-average";
  }
  if (is_there(place)) {
    throw UsageError(
        fmt::format("{}: exists already; name another directory with AverageOptions::out", place.string()));
  }
  return place;
}

/// How a training whose only checkpoint has this state would get more.
std::string advice_for_more(const TrainingState& state, const TrainingConfig& config) {
  if (!is_finished(state, config))
    return fmt::format("its training was stopped after step {}: go on with it (ExistingRun::resume)",
                       state.step);
  if (state.step < 2 * config.checkpoint_every) {
    return fmt::format("train with training.checkpoint_every of at most {} instead of {}, or longer",
                       std::max<int64_t>(state.step / 2, 1), config.checkpoint_every);
  }
  if (config.keep_checkpoints < 2) return "train with training.keep_checkpoints of at least 2";
  return "the others were deleted";
}

std::vector<fs::path> newest_checkpoints(const fs::path& run_dir, const TrainingConfig& config,
                                         std::optional<int64_t> last) {
  if (last && *last < 2) {
    throw UsageError(fmt::format("AverageOptions::last {}: a mean needs at least two checkpoints", *last));
  }
  auto checkpoints = checkpoints_of(run_dir);
  if (checkpoints.empty()) {
    throw CheckpointError(
        fmt::format("{}: has no checkpoints to average: give a trained run that still has its directory "
                    "checkpoints",
                    run_dir.string()));
  }
  if (checkpoints.size() == 1) {
    throw CheckpointError(fmt::format("{}: has one checkpoint, and a mean needs at least two: {}",
                                      run_dir.string(),
                                      advice_for_more(read_training_state(checkpoints.front()), config)));
  }
  if (!last) return checkpoints;
  if (std::ssize(checkpoints) < *last) {
    throw UsageError(
        fmt::format("{}: has kept {} checkpoints, not {}: average {} or fewer (AverageOptions::last)",
                    run_dir.string(), checkpoints.size(), *last, checkpoints.size()));
  }
  checkpoints.resize(static_cast<size_t>(*last));
  return checkpoints;
}

}  // namespace

AveragedRun average_run(const fs::path& run_dir, const AverageOptions& options) {
  const auto checkpoints = newest_checkpoints(run_dir, read_run_experiment(run_dir).training, options.last);
  AveragedRun result{.run_dir = place_for(run_dir, options.out), .steps = {}};
  const auto run = Run::open(run_dir, options.device);
  const auto say = [&](const std::string& line) {
    if (options.on_message) options.on_message(line);
  };

  say(fmt::format("evaluating {}", run_dir.string()));
  result.loss_before = run.evaluate(Split::valid).at("loss");
  std::vector<fs::path> files;
  for (const auto& checkpoint : checkpoints) {
    result.steps.push_back(*step_of(checkpoint));
    files.push_back(checkpoint / weights_name(run.model()));
  }
  say(fmt::format("averaging {} checkpoints", files.size()));
  load_weights(files.front(), run.model());
  files.erase(files.begin());
  {
    const SubstituteWeights averaged(run.model(), mean_weights(run.model(), files));
    say("evaluating the mean");
    result.loss = run.evaluate(Split::valid).at("loss");
    write_run(result.run_dir, run.experiment(), run.task().vocabulary(), run.model());
  }
  return result;
}

}  // namespace zoo

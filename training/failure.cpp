#include "training/failure.h"

#include <filesystem>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "io/files.h"

namespace zoo {
namespace {

/// What people can do. A checkpoint of this very step does not help: from there the same happens again.
std::string way_out(const TrainingRun& run) {
  constexpr std::string_view remedy = "a lower training.optimizer.lr or a longer warm-up";
  std::optional<std::filesystem::path> good, useless;
  for (const auto& checkpoint : checkpoints_of(run.dir)) {
    auto& kind = *step_of(checkpoint) < run.state.step ? good : useless;
    if (!kind) kind = checkpoint;
  }
  if (good && useless) {
    return fmt::format(
        "the last good checkpoint is {}: remove {}, which leads here again, and resume with {}",
        good->string(), useless->string(), remedy);
  }
  if (good) return fmt::format("the last good checkpoint is {}: resume with {}", good->string(), remedy);
  if (useless) {
    return fmt::format("the only checkpoint, {}, leads here again: train anew with {}", useless->string(),
                       remedy);
  }
  return fmt::format("there is no checkpoint yet: train anew with {}", remedy);
}

}  // namespace

void fail(const TrainingRun& run, const std::string& problem) {
  if (!run.is_first()) throw PeerError("training cannot go on; the first process reports the reason");
  const auto message = fmt::format("{}; {}", problem, way_out(run));
  write_file_atomically(run.dir / kFailureFile, message + "\n");
  throw TrainingError(message);
}

void fail_if_for_memory(const TrainingRun& run, const std::exception& error) {
  const auto shortage = memory_shortage(error);
  if (!shortage) return;
  const auto checkpoints = checkpoints_of(run.dir);
  throw TrainingError(fmt::format(
      "step {}: {} has too little memory{}: set training.activation_checkpointing=every_layer, take a "
      "smaller "
      "training.batch_size with more training.gradient_accumulation, or a smaller data.sequence_length or "
      "model; {}",
      run.state.step + 1, run.options.device.str(), *shortage,
      checkpoints.empty() ? "there is no checkpoint yet"
                          : fmt::format("{} stays", checkpoints.front().filename().string())));
}

}  // namespace zoo

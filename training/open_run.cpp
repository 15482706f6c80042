#include "training/open_run.h"

#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "checkpoints/base_weights.h"
#include "checkpoints/run.h"
#include "checkpoints/stored_model.h"
#include "io/safetensors.h"
#include "models/families/families.h"
#include "tasks/epochs.h"
#include "tasks/preparation.h"

namespace zoo {
namespace {

void announce(const TrainingRun& run, const std::optional<std::string>& note) {
  if (note) run.report(*note);
}

/// The task of the first process.
std::unique_ptr<Task> new_or_resumed_task(TrainingRun& run) {
  if (run.fork || run.directory->goes_on())
    return task_with_vocabulary(run.experiment, read_run_vocabulary(run.origin(), task_type(run.experiment)));
  announce(run, learning_note(run.experiment));
  run.source = open_initial_model(run.experiment);
  auto task = task_with_vocabulary(run.experiment, initial_vocabulary(run.experiment, run.source));
  if (!run.source && task->vocabulary().tokenizer)
    announce(run, vocabulary_note(run.experiment.data.tokenizer, *task->vocabulary().tokenizer));
  return task;
}

/// Keeps the checkpoint's loss scale only if it was made with fp16 and this training uses fp16, too.
void load(TrainingRun& run, const std::filesystem::path& checkpoint) {
  auto& state = run.state;
  const LossScale fresh = state.loss_scale;
  state = run.learner->load(checkpoint, run.base);
  const bool was_scaled = state.loss_scale != LossScale();
  if (!was_scaled || run.learner->precision() != Precision::fp16) state.loss_scale = fresh;
}

/// Throws ConfigError if the steps that are wanted are done already.
void check_steps(const TrainingRun& run) {
  const int64_t done = run.state.step, least = run.fork ? done + 1 : done;
  if (run.config().steps >= least) return;
  throw ConfigError(fmt::format("training.steps: {} are wanted, but {} are done at {}: give at least {}",
                                run.config().steps, done, run.first_checkpoint()->string(), least));
}

/// Goes on with a checkpoint, in the first process.
void resume(TrainingRun& run, const std::filesystem::path& checkpoint, const std::string& data) {
  load(run, checkpoint);
  if (run.fork) run.fork->forget_lost_best(run.state);
  check_steps(run);
  if (!run.state.data.empty() && run.state.data != data) {
    throw ConfigError(
        fmt::format("{}: the training or validation data have changed since this run was started; restore "
                    "them, or train anew with ExistingRun::replace or another TrainOptions::run_dir",
                    run.origin().string()));
  }
  if (!run.fork) finish_removals(run.dir);
  run.report(fmt::format("goes on after step {} of {}", run.state.step, run.config().steps));
}

void take_initial_weights(TrainingRun& run, Model& model) {
  announce(run, initial_weights_note(run.experiment));
  if (!run.source) run.source = open_initial_model(run.experiment);
  run.report(load_initial_weights(*run.source, *run.task, model));
  run.source.reset();
}

}  // namespace

void open_data(TrainingRun& run) {
  if (run.is_first()) {
    if (run.options.from && run.options.existing == ExistingRun::resume)
      throw UsageError("TrainOptions::from makes a new run, which ExistingRun::resume would not");
    if (run.options.from) run.fork.emplace(*run.options.from, run.experiment, run.dir);
    run.directory = std::make_unique<RunDirectory>(run.experiment, run.dir, run.options.existing);
    run.task = new_or_resumed_task(run);
    announce(run, reading_note(run.experiment.data, Split::train));
  } else {
    run.task = task_with_vocabulary(run.experiment, read_run_vocabulary(run.dir, task_type(run.experiment)));
  }
  resolve_epochs(run.experiment, *run.task);
}

void build_learner(TrainingRun& run) {
  const auto& experiment = run.experiment;
  auto& task = *run.task;
  const bool has_adapters = run.config().lora.has_value();
  const auto checkpoint = run.first_checkpoint();
  if (checkpoint) {
    check_model_size(
        SafetensorsFile(has_adapters ? run.origin() / kBaseFile : *checkpoint / "model.safetensors"), task);
  }
  task.batches(Split::train).use_share(run.processes.rank(), run.processes.size());
  torch::manual_seed(static_cast<uint64_t>(run.config().seed));
  auto model = checkpoint ? uninitialized_model(experiment, task)  // the checkpoint's weights come next
                          : initialized_model(experiment, task);
  if (!checkpoint) start_at_mean(task, *model);
  if (has_adapters && checkpoint) run.base = load_base(run.origin(), *model, BaseCheck::hash);
  // The others get the first process's weights, except experts that it does not keep.
  const bool divides = run.config().parallel.experts == ExpertPlacement::divided;
  if (experiment.init_from && (run.directory ? !checkpoint : divides && !newest_checkpoint(run.dir)))
    take_initial_weights(run, *model);
  task.batches(Split::valid);
  run.learner = std::make_unique<Learner>(experiment, std::move(model), task.objective(), run.processes,
                                          run.options.device);
  run.state.loss_scale = LossScale::for_precision(run.learner->precision());
}

void begin_or_resume(TrainingRun& run) {
  if (!run.is_first()) {
    if (const auto checkpoint = newest_checkpoint(run.dir)) load(run, *checkpoint);
    return;
  }
  for (const auto& note : run.task->notes()) run.report("note: " + note);
  const std::string data = run.task->hash_of_data();
  const auto checkpoint = run.first_checkpoint();
  if (checkpoint) resume(run, *checkpoint, data);
  run.state.data = data;
  run.directory->begin(run.task->vocabulary(), run.config().steps, [&] {
    if (run.fork) run.fork->copy_to(run.dir);
  });
  if (run.config().lora && !checkpoint) run.base = save_base(run.dir, run.learner->model());
  run.directory->truncate_samples(run.state.sample_bytes);
  std::error_code ignored;
  std::filesystem::remove(run.dir / kFailureFile, ignored);
  // Without a checkpoint the run starts over, and so does its log.
  run.metrics = std::make_unique<MetricsLog>(run.dir, run.state.step > 0 ? run.state.step : -1);
}

void fit_into_memory(TrainingRun& run) {
  run.learner->share_weights();
  if (run.config().batch_size.is_auto()) {
    const auto place = run.options.place.value_or(ProcessPlace());
    run.learner->fit_into_memory(*run.task, {.memory_bytes = run.options.memory_bytes,
                                             .n_sharing = run.options.device.is_cpu() ? place.local_size : 1,
                                             .before = run.state.micro_batch_size});
    note_rows_at_once(run);
    run.memory.reset_peak();
  }
  run.seconds_before = run.state.seconds;
  run.since_log.tokens_before = run.state.tokens;
}

void note_rows_at_once(TrainingRun& run) {
  const int64_t n_rows = run.learner->micro_batch_size();
  if (n_rows == run.state.micro_batch_size) return;
  run.state.micro_batch_size = n_rows;
  run.report(
      fmt::format("training.batch_size: auto: {} sequences go through the model at once, of {} in a step",
                  n_rows, run.config().sequences()));
}

}  // namespace zoo

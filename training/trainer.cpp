#include "training/trainer.h"

#include <exception>

#include "training/failure.h"
#include "training/log_step.h"
#include "training/open_run.h"
#include "training/save_run.h"
#include "training/take_step.h"
#include "training/training_run.h"
#include "training/validate.h"

namespace zoo {
namespace {

/// Evaluates and saves after the last step.
void finish(TrainingRun& run) {
  if (!run.due(run.config().evaluate_every)) evaluate(run);
  if (run.config().average_last) try_mean_of_weights(run);
  run.state.finished = true;
  save(run);
  warn_if_nothing_learnt(run);
}

/// Whether something is written after this step.
bool is_due(const TrainingRun& run) {
  const auto& config = run.config();
  return run.due(config.log_every) || run.due(config.evaluate_every) || run.due(config.checkpoint_every);
}

}  // namespace

TrainResult train(const Experiment& experiment, const TrainOptions& options) {
  TrainingRun run(experiment, options);
  run.first_before_others([&] {
    open_data(run);
    build_learner(run);
    begin_or_resume(run);
  });
  fit_into_memory(run);
  const auto& config = run.config();
  try {
    run.start_clock();
    run.agree();
    auto end = run.why_to_end();
    if (!end && run.is_out_of_patience()) end = TrainEnd::out_of_patience;
    const auto is_last = [&] { return end && *end != TrainEnd::interrupted; };
    // An earlier process ended between the last step and finish(), or the steps or the time limit were
    // reduced to what was done.
    if (is_last() && run.state.step > 0 && !run.state.finished) finish(run);
    if (lacks_best(run.state) && !end) evaluate_start_of_fork(run);
    if (config.evaluate_at_start && run.state.step == 0 && !end) evaluate_at_start(run);
    while (!end) {
      take_step(run);
      end = run.why_to_end();
      if (end || is_due(run)) read_last_step(run);
      if (is_last() || run.due(config.log_every)) log_step(run);
      run.report();
      if (run.due(config.evaluate_every)) evaluate(run);
      if (!is_last() && run.is_out_of_patience()) end = TrainEnd::out_of_patience;
      if (is_last()) {
        finish(run);
      } else if (end || run.due(config.checkpoint_every)) {
        save(run);
      }
    }
    return run.result(*end);
  } catch (const std::exception& error) {
    fail_if_for_memory(run, error);
    throw;
  }
}

}  // namespace zoo

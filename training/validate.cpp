#include "training/validate.h"

#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checkpoints/base_weights.h"
#include "checkpoints/finite.h"
#include "checkpoints/guess.h"
#include "checkpoints/weight_average.h"
#include "tasks/task_type.h"
#include "training/failure.h"
#include "training/log_step.h"

namespace zoo {
namespace {

Metrics metrics_of_validation(TrainingRun& run) {
  return run.task->evaluate(run.learner->model(), Split::valid,
                            {.max_batches = run.config().evaluate_batches,
                             .processes = &run.processes,
                             .wanted = run.config().kept_metric()});
}

void save_best(const TrainingRun& run) {
  const auto& model = run.learner->model();
  save_weights(run.dir / weights_name(model), model, belongs_to(run.base));
}

/// Saves the current weights as the run's if they are the best so far or best_by is `last`. Returns whether
/// it did.
bool keep_if_best(TrainingRun& run, const Metrics& metrics) {
  const double score = metrics.at(run.config().kept_metric());
  const Better better = task_type(run.experiment).better(run.config().kept_metric());
  const auto is_better = [&](double other) {
    return better == Better::lower ? score < other : score > other;
  };
  if (!std::isfinite(metrics.at("loss"))) return false;
  if (run.state.best_score && !run.config().keeps_last() && !is_better(*run.state.best_score)) return false;
  // All processes have the same weights, so they take the same decision.
  if (const auto name = find_not_finite(named_weights(run.learner->model())))
    fail(run, fmt::format("step {}: the weights of {} are not numbers", run.state.step, *name));
  if (run.is_first()) save_best(run);
  run.state.best_score = score;
  run.state.best_step = run.state.step;
  return true;
}

}  // namespace

void evaluate_at_start(TrainingRun& run) {
  const auto whole = run.learner->whole_model();
  Metrics row = prefixed("valid_", metrics_of_validation(run));
  row.emplace("flops", 0);
  run.record(row);
}

void evaluate_start_of_fork(TrainingRun& run) {
  const auto averaged = run.learner->use_average();
  const auto whole = run.learner->whole_model();
  const Metrics metrics = metrics_of_validation(run);
  keep_if_best(run, metrics);
  run.report(fmt::format("step {}, where the fork begins: validation{}", run.state.step, in_words(metrics)));
}

void evaluate(TrainingRun& run) {
  const auto averaged = run.learner->use_average();
  const auto whole = run.learner->whole_model();
  const Metrics metrics = metrics_of_validation(run);
  if (const double loss = metrics.at("loss"); !std::isfinite(loss))
    fail(run, fmt::format("step {}: the validation loss is {}", run.state.step, loss));
  run.valid_loss = metrics.at("loss");
  if (run.is_first()) {
    Metrics row = prefixed("valid_", metrics);
    row.emplace("flops", run.state.flops);
    for (const auto& observer : run.observers) {
      for (const auto& [name, value] : observer->after_evaluation(run.learner->model(), metrics)) {
        if (std::isfinite(value)) row.emplace(name, value);
      }
    }
    run.record(row);
    run.state.sample_bytes += run.directory->append_sample(
        fmt::format("=== step {}, validation loss {:.4f}\n{}\n", run.state.step, metrics.at("loss"),
                    to_text(run.task->samples(run.learner->model()))));
  }
  const bool best = keep_if_best(run, metrics);
  const bool is_news = best && !run.config().keeps_last();
  run.report(
      fmt::format("step {}: validation{}{}", run.state.step, in_words(metrics), is_news ? "  (best)" : ""));
}

void try_mean_of_weights(TrainingRun& run) {
  std::vector<std::filesystem::path> files;
  std::vector<int64_t> steps = {run.state.step};
  for (const auto& checkpoint : checkpoints_of(run.dir)) {
    const int64_t step = *step_of(checkpoint);
    // Checkpoints from stops do not count, so that a stopped run ends like one that was not stopped.
    if (step >= run.state.step || step % run.config().checkpoint_every != 0) continue;
    if (std::ssize(steps) == *run.config().average_last) break;
    files.push_back(checkpoint / weights_name(run.learner->model()));
    steps.push_back(step);
  }
  if (files.empty()) return run.report("training.average_last: there is no checkpoint before the last step");

  const auto whole = run.learner->whole_model();
  const SubstituteWeights mean(run.learner->model(), mean_weights(run.learner->model(), files));
  const Metrics metrics = metrics_of_validation(run);
  run.record(prefixed("mean_valid_", metrics));
  const bool best = keep_if_best(run, metrics);
  run.report(fmt::format("mean of the weights at steps {}: validation{}{}", fmt::join(steps, ", "),
                         in_words(metrics), best ? "  (best)" : ", no better"));
}

void warn_if_nothing_learnt(const TrainingRun& run) {
  if (!run.is_first()) return;
  // A thread may still read batches of run.task ahead.
  const auto task = task_with_vocabulary(run.experiment, run.task->vocabulary());
  const auto guess = guess_losses(*task, Split::valid);
  if (const auto note = guess ? guess_note(run.valid_loss, *guess) : std::nullopt)
    run.report("note: " + *note);
}

}  // namespace zoo

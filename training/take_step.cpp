#include "training/take_step.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/random.h"
#include "models/families/model_cost.h"
#include "training/failure.h"
#include "training/open_run.h"

namespace zoo {
namespace {

/// Seeds LibTorch's generators; returns the seed of the numbers that all processes share.
uint64_t seed_step(const TrainingRun& run) {
  const auto seed = static_cast<uint64_t>(run.config().seed), step = static_cast<uint64_t>(run.state.step),
             rank = static_cast<uint64_t>(run.processes.rank());
  for (const auto device : {torch::Device(torch::kCPU), run.options.device}) {
    auto generator = at::globalContext().defaultGenerator(device);
    generator.set_current_seed(CounterRandom({seed, step, rank}).next());
  }
  return CounterRandom({seed, step}).next();
}

/// Whether the scaled gradients were too large for fp16. If so, the step is skipped, and the next scale is
/// smaller.
bool overflowed(const TrainingRun& run, double loss, double grad_norm) {
  return run.learner->precision() == Precision::fp16 && run.state.loss_scale.value > LossScale::least &&
         !(std::isfinite(loss) && std::isfinite(grad_norm));
}

/// Prevents a step that would ruin the weights.
void check_finite(const TrainingRun& run, const std::vector<double>& losses, double grad_norm,
                  const std::vector<BatchPosition>& positions) {
  const auto fail_at = [&](const BatchPosition& position, std::string_view what, double value) {
    fail(run, fmt::format("step {}, epoch {}, batch {}: {} is {}", run.state.step + 1, position.epoch,
                          position.index, what, value));
  };
  for (size_t i = 0; i < losses.size(); ++i) {
    if (!std::isfinite(losses[i])) fail_at(positions[i], "the loss", losses[i]);
  }
  if (!std::isfinite(grad_norm)) fail_at(positions.back(), "the norm of the gradient", grad_norm);
}

BatchSequence read_batches(TrainingRun& run) {
  auto& state = run.state;
  auto batches =
      next_batches(run.task->batches(Split::train), state.next_batch, run.config().gradient_accumulation);
  for (size_t i = 0; i < batches.size(); ++i) {
    const auto batch = batches[i];
    state.tokens += batch.tokens;
    // The backward pass costs twice the forward pass: one product for the weights and one for the input.
    state.flops += 3 * forward_flops(run.experiment.model, run.task->purpose(), pass_shape(batch));
  }
  return batches;
}

StepResult step(TrainingRun& run) {
  auto& state = run.state;
  auto& learner = *run.learner;
  state.finished = false;
  const double lr = run.config().learning_rate(run.experiment.model.d_model, state.step, run.time_used);
  const auto batches = read_batches(run);
  const RandomScope random({seed_step(run)});
  const auto gradients = learner.differentiate(batches, state.loss_scale.value);
  note_rows_at_once(run);
  const auto losses = run.agree(gradients.losses);
  const double total = std::reduce(losses.begin(), losses.end());
  if (overflowed(run, total, gradients.norm)) {
    state.loss_scale.update(Overflow::yes);
  } else {
    check_finite(run, losses, gradients.norm, batches.positions());
    learner.step(lr);
    if (learner.precision() == Precision::fp16) state.loss_scale.update(Overflow::no);
  }
  run.observed.clear();
  if (const int64_t n = state.step + 1; n % run.config().log_every == 0 || n == run.config().steps) {
    for (const auto& observer : run.observers) run.observed.merge(observer->after_step(learner.model(), n));
  }
  learner.forget_gradients();
  state.peak_memory_bytes = std::max(state.peak_memory_bytes, run.memory.peak());
  ++state.step;
  if (std::isfinite(total)) {
    ++state.steps_since_log;
    state.loss_since_log += total;
  }
  return {.loss = total, .lr = lr, .grad_norm = gradients.norm};
}

}  // namespace

StepResult take_step(TrainingRun& run) {
  const Stopwatch busy;
  const int64_t bytes = run.processes.bytes_exchanged();
  const auto result = step(run);
  const int64_t step_bytes = run.processes.bytes_exchanged() - bytes;
  if (!run.processes.is_alone() && run.step_bytes < 0) {
    run.report(fmt::format("{} processes; each exchanges {:.2f} MB with the others in a step",
                           run.processes.size(), static_cast<double>(step_bytes) / 1e6));
  }
  run.step_bytes = step_bytes;
  run.since_log.seconds += busy.seconds();
  ++run.since_log.steps;
  return result;
}

}  // namespace zoo

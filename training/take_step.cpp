#include "training/take_step.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
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

/// Prevents a step that would ruin the weights, or anything that would be written after it.
void check_finite(TrainingRun& run, const UnreadStep& step, const std::vector<double>& losses,
                  double grad_norm) {
  const auto fail_at = [&](const BatchPosition& position, std::string_view what, double value) {
    run.state.step = step.step - 1;  // which is what led here
    fail(run, fmt::format("step {}, epoch {}, batch {}: {} is {}", step.step, position.epoch, position.index,
                          what, value));
  };
  for (size_t i = 0; i < losses.size(); ++i) {
    if (!std::isfinite(losses[i])) fail_at(step.positions[i], "the loss", losses[i]);
  }
  if (!std::isfinite(grad_norm)) fail_at(step.positions.back(), "the norm of the gradient", grad_norm);
}

/// A GPU need not wait while the host looks at a loss. Whether a step in fp16 is taken depends on its
/// numbers.
bool reads_late(const TrainingRun& run) {
  return !run.options.device.is_cpu() && run.learner->precision() != Precision::fp16;
}

/// Counts a step whose numbers are known. `losses` are summed over the processes.
void count(TrainingRun& run, const UnreadStep& step, const std::vector<double>& losses, double grad_norm) {
  auto& state = run.state;
  const double total = std::reduce(losses.begin(), losses.end());
  run.last_step = {.lr = step.lr, .grad_norm = grad_norm};
  if (!std::isfinite(total)) return;
  ++state.steps_since_log;
  state.loss_since_log += total;
}

/// Counts the step before, if it has not been counted.
void count_unread(TrainingRun& run, const std::function<std::vector<double>(std::vector<double>)>& sum) {
  const auto step = std::exchange(run.unread, std::nullopt);
  if (!step) {
    sum({});
    return;
  }
  const auto [own_losses, norm] = step->gradients.read();
  const auto losses = sum(own_losses);
  check_finite(run, *step, losses, norm);
  count(run, *step, losses, norm);
}

/// Takes the step unless its numbers are wrong.
void read_and_step(TrainingRun& run, const UnreadStep& now) {
  auto& state = run.state;
  auto& learner = *run.learner;
  const auto gradients = now.gradients.read();
  const auto losses = run.agree(gradients.losses);
  if (overflowed(run, std::reduce(losses.begin(), losses.end()), gradients.norm)) {
    state.loss_scale.update(Overflow::yes);
  } else {
    check_finite(run, now, losses, gradients.norm);
    learner.step(now.lr);
    if (learner.precision() == Precision::fp16) state.loss_scale.update(Overflow::no);
  }
  count(run, now, losses, gradients.norm);
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

void step(TrainingRun& run) {
  auto& state = run.state;
  auto& learner = *run.learner;
  state.finished = false;
  const double lr = run.config().learning_rate(run.experiment.model.d_model, state.step, run.time_used);
  const auto batches = read_batches(run);
  const RandomScope random({seed_step(run)});
  UnreadStep now{.gradients = learner.differentiate(batches, state.loss_scale.value),
                 .step = state.step + 1,
                 .lr = lr,
                 .positions = batches.positions()};
  note_rows_at_once(run);
  if (const auto obstacle = learner.new_obstacle()) run.report(*obstacle);
  if (reads_late(run)) {
    learner.step(lr);
    count_unread(run, [&](const std::vector<double>& losses) { return run.agree(losses); });
    run.unread.emplace(std::move(now));
  } else {
    read_and_step(run, now);
  }
  run.observed.clear();
  if (const int64_t n = state.step + 1; n % run.config().log_every == 0 || n == run.config().steps) {
    for (const auto& observer : run.observers) run.observed.merge(observer->after_step(learner.model(), n));
  }
  learner.forget_gradients();
  state.peak_memory_bytes = std::max(state.peak_memory_bytes, run.memory.peak());
  ++state.step;
}

}  // namespace

void read_last_step(TrainingRun& run) {
  if (!run.unread) return;
  const Stopwatch busy;
  count_unread(run, [&](const std::vector<double>& losses) { return run.sum(losses); });
  run.since_log.seconds += busy.seconds();
}

void take_step(TrainingRun& run) {
  const Stopwatch busy;
  const int64_t bytes = run.processes.bytes_exchanged();
  step(run);
  const int64_t step_bytes = run.processes.bytes_exchanged() - bytes;
  if (!run.processes.is_alone() && run.step_bytes < 0) {
    run.report(fmt::format("{} processes; each exchanges {:.2f} MB with the others in a step",
                           run.processes.size(), static_cast<double>(step_bytes) / 1e6));
  }
  run.step_bytes = step_bytes;
  run.since_log.seconds += busy.seconds();
  ++run.since_log.steps;
}

}  // namespace zoo

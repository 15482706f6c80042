#include "training/log_step.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "layers/experts.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

/// "12.3 k tokens/s", "840 images/s"
std::string rate_text(double rate, std::string_view unit) {
  return rate < 1000 ? fmt::format("{:.0f} {}s/s", rate, unit)
                     : fmt::format("{:.1f} k {}s/s", rate / 1000, unit);
}

/// How even the work of the experts was in the last step, in the layer where it was least even.
void add_loads(const Model& model, Metrics& row) {
  double n_layers = 0, entropy = 0;
  for (const auto& experts : experts_of(model)) {
    const auto load = experts->load_of_step();
    if (!load) continue;
    row["experts_busiest"] = std::max(row["experts_busiest"], load->busiest);
    if (experts->options.capacity() > 0)
      row["experts_dropped"] = std::max(row["experts_dropped"], load->dropped);
    row["experts_idle"] = std::max(row["experts_idle"], load->idle);
    entropy += load->entropy;
    row["router_entropy"] = entropy / ++n_layers;
  }
}

}  // namespace

Metrics prefixed(std::string_view prefix, const Metrics& metrics) {
  Metrics row;
  for (const auto& [name, value] : metrics) {
    if (!is_count(name)) row.emplace(fmt::format("{}{}", prefix, name), value);
  }
  return row;
}

std::string in_words(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) {
    if (!is_count(name)) text += fmt::format("  {} {}", name, metric_text(value));
  }
  return text;
}

void log_step(TrainingRun& run) {
  auto& state = run.state;
  auto& since = run.since_log;
  // NaN if every step since the last row overflowed. Only finite values are written.
  const double loss = state.loss_since_log / static_cast<double>(state.steps_since_log);
  const double rate = static_cast<double>(state.tokens - since.tokens_before) / since.seconds;
  Metrics row = {{"train_loss", loss},
                 {"lr", run.last_step.lr},
                 {"grad_norm", run.last_step.grad_norm},
                 {"tokens_per_second", rate},
                 {"flops", state.flops},
                 {"peak_memory_bytes", static_cast<double>(state.peak_memory_bytes)}};
  if (run.learner->precision() == Precision::fp16) {
    row.emplace("loss_scale", state.loss_scale.value);
    row.emplace("skipped_steps", static_cast<double>(state.loss_scale.skipped));
  }
  if (!run.processes.is_alone()) {
    row.emplace("communication_bytes_per_step", static_cast<double>(run.step_bytes));
  }
  add_loads(run.learner->model(), row);
  row.merge(run.observed);
  std::erase_if(row, [](const auto& entry) { return !std::isfinite(entry.second); });
  run.record(row);
  run.status =
      fmt::format("loss {:.4f}  {}  {:.1f} ms/step", loss, rate_text(rate, task_type(run.experiment).unit),
                  since.seconds * 1000 / static_cast<double>(since.steps));
  state.loss_since_log = 0;
  state.steps_since_log = 0;
  since = {.tokens_before = state.tokens};
}

}  // namespace zoo

#include "training/training_run.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <ATen/Parallel.h>
#include <torch/types.h>

#include "base/machine.h"
#include "parallel/threads.h"

namespace zoo {
namespace {

/// Sets the number of threads of this process; 0 = its share of the machine.
void use_threads(int64_t n_threads, const std::optional<ProcessPlace>& place) {
  const bool is_set = std::getenv("OMP_NUM_THREADS") != nullptr;
  if (n_threads == 0 && place && !is_set)
    n_threads = std::max<int64_t>(at::get_num_threads() / place->local_size, 1);
  if (n_threads > 0) at::set_num_threads(static_cast<int>(n_threads));
}

}  // namespace

TrainingRun::TrainingRun(const Experiment& wanted, const TrainOptions& how)
    : experiment(wanted),
      options(how),
      dir(run_path(wanted, how.run_dir)),
      processes(how.place.value_or(ProcessPlace()), how.device,
                std::chrono::seconds(wanted.training.parallel.timeout_seconds)),
      memory(how.device) {
  pin_paths(experiment);
  use_threads(config().threads, options.place);
  flush_denormals();
  if (!processes.is_alone() && !config().metrics.empty())
    throw ConfigError("training.metrics are measured by one process: leave them out, or train with one");
  if (!is_first()) return;
  for (const auto& selection : config().observers)
    observers.push_back(training_observer_types().at(selection).make(selection));
}

std::optional<std::filesystem::path> TrainingRun::first_checkpoint() const {
  if (fork) return fork->checkpoint();
  return directory ? directory->checkpoint() : std::nullopt;
}

void TrainingRun::first_before_others(const std::function<void()>& work) {
  constexpr std::chrono::hours timeout(6);  // a large corpus takes long to prepare
  for (const bool is_turn_of_first : {true, false}) {
    processes.run_or_fail_together(
        [&] {
          if (is_first() == is_turn_of_first) work();
        },
        timeout);
  }
}

std::vector<double> TrainingRun::agree(const std::vector<double>& sums) {
  std::vector<double> numbers = sums;
  numbers.push_back(options.should_stop && options.should_stop() ? 1 : 0);
  numbers.push_back(is_first() && config().max_seconds ? seconds() / *config().max_seconds : 0);
  numbers = sum(std::move(numbers));
  time_used = numbers.back();
  numbers.pop_back();
  stop_wanted = numbers.back() > 0;
  numbers.pop_back();
  return numbers;
}

std::vector<double> TrainingRun::sum(std::vector<double> numbers) const {
  if (processes.is_alone()) return numbers;
  const auto tensor = torch::tensor(numbers, torch::kDouble);
  processes.all_reduce(tensor).wait();
  numbers.assign(tensor.const_data_ptr<double>(), tensor.const_data_ptr<double>() + tensor.numel());
  return numbers;
}

std::optional<TrainEnd> TrainingRun::why_to_end() const {
  if (state.step >= config().steps) return TrainEnd::all_steps;
  if (time_used >= 1) return TrainEnd::out_of_time;
  if (stop_wanted) return TrainEnd::interrupted;
  return std::nullopt;
}

void TrainingRun::report(std::string message) const {
  if (!options.on_progress || !is_first()) return;
  options.on_progress({.step = state.step,
                       .steps = config().steps,
                       .seconds = seconds(),
                       .max_seconds = config().max_seconds,
                       .status = status,
                       .message = std::move(message),
                       .metrics = newest});
}

void TrainingRun::record(const Metrics& row) {
  if (metrics) metrics->write(state.step, state.tokens, seconds(), row);
  for (const auto& [name, value] : row) newest.insert_or_assign(name, value);
}

TrainResult TrainingRun::result(TrainEnd end) const {
  return {.run_dir = dir,
          .end = end,
          .step = state.step,
          .best_score = state.best_score,
          .best_step = state.best_step,
          .seconds = seconds()};
}

}  // namespace zoo

#include "tasks/epochs.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {

void resolve_epochs(Experiment& experiment, Task& task) {
  auto& training = experiment.training;
  if (!training.epochs) return;
  auto& batches = task.batches(Split::train);
  int64_t n = 0;
  for (int64_t epoch = 0; epoch < *training.epochs; ++epoch) n += batches.n_batches(epoch);
  training.steps = std::max<int64_t>(1, n / training.gradient_accumulation);
  training.epochs.reset();
  validate(training, [](std::string_view key, std::string_view problem) {
    throw ConfigError(problem.starts_with(key) ? fmt::format("training.{}", problem)
                                               : fmt::format("training.{} {}", key, problem));
  });
}

}  // namespace zoo

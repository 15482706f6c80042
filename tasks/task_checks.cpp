#include "tasks/task_checks.h"

#include <algorithm>

#include <fmt/format.h>

namespace zoo {

void require_shape(const Experiment& experiment, std::initializer_list<FamilyShape> shapes,
                   std::string_view wanted, const Complain& complain) {
  if (std::ranges::find(shapes, shape_of(experiment.model)) != shapes.end()) return;
  complain("model.architecture", fmt::format("must be {} for {}, not {}", wanted, experiment.task.type,
                                             experiment.model.architecture.type));
}

void require_positions(const Experiment& experiment, std::string_view key, int64_t length,
                       const Complain& complain) {
  if (length <= experiment.model.max_positions) return;
  complain(key,
           fmt::format("{} is longer than model.max_positions {}", length, experiment.model.max_positions));
}

}  // namespace zoo

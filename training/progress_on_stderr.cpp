#include <memory>
#include <optional>
#include <string>

#include "io/progress.h"
#include "training/trainer.h"

namespace zoo {

std::function<void(const TrainProgress&)> progress_on_stderr(std::string_view title) {
  // Made after the first step, because only then it is known how many steps are done already, and how many
  // there are.
  const auto shown = std::make_shared<std::unique_ptr<Progress>>();
  return [shown, name = std::string(title)](const TrainProgress& progress) {
    if (!*shown) {
      if (!progress.message.empty()) return Progress(name, {}).message(progress.message);
      *shown = std::make_unique<Progress>(
          name, ProgressCount{.total = progress.steps, .unit = "steps", .first = progress.step});
    }
    if (!progress.message.empty()) (*shown)->message(progress.message);
    std::optional<TimeLimit> limit;
    if (progress.max_seconds) limit = {.used = progress.seconds, .total = *progress.max_seconds};
    (*shown)->update(progress.step, progress.status, limit);
  };
}

}  // namespace zoo

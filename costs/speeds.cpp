#include "costs/speeds.h"

#include <memory>

#include <fmt/format.h>

#include "checkpoints/stored_model.h"
#include "tasks/task.h"

namespace zoo {

std::vector<std::vector<Speed>> measure_in_turns(const std::vector<MeasuredRun>& runs,
                                                 const SpeedOptions& options) {
  constexpr int kTurns = 3;
  constexpr double kQuantities = 3;  // training, reading prompts, writing
  const MeasureOptions once{
      .seconds = options.seconds / kQuantities / kTurns, .length = {}, .should_stop = options.should_stop};
  std::vector<std::unique_ptr<Task>> tasks;
  for (const auto& run : runs) tasks.push_back(open_stored_model(run.dir).task);
  std::vector<std::vector<Speed>> speeds(runs.size());
  for (int turn = 1; turn <= kTurns; ++turn) {
    for (size_t i = 0; i < runs.size(); ++i) {
      if (options.should_stop && options.should_stop()) return {};
      if (options.on_message)
        options.on_message(fmt::format("measuring {}, turn {} of {}", runs[i].name, turn, kTurns));
      try {
        speeds[i].push_back(measure_speed(*tasks[i], options.device, once));
      } catch (const MeasurementStopped&) {
        return {};
      }
    }
  }
  return speeds;
}

}  // namespace zoo

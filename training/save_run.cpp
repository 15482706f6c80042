#include "training/save_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/machine.h"
#include "training/failure.h"

namespace zoo {

void save(TrainingRun& run) {
  run.state.seconds = run.seconds();
  run.state.peak_resident_bytes = std::max(run.state.peak_resident_bytes, peak_resident_bytes());
  const auto whole = run.learner->whole_model();
  auto parts = run.learner->gather();
  parts.base = run.base;
  // If a checkpoint cannot be written, all processes end.
  run.processes.run_or_fail_together([&] {
    if (!run.is_first()) return;
    if (const auto name = find_not_finite(parts))
      fail(run, fmt::format("step {}: {} has elements that are not numbers", run.state.step, *name));
    save_checkpoint(run.dir, parts, run.state,
                    {.newest = std::max(run.config().keep_checkpoints, run.config().average_last.value_or(0)),
                     .every = run.config().checkpoint_every});
    run.directory->committed();
    for (const auto& observer : run.observers)
      observer->after_checkpoint(run.learner->model(), run.state.step, run.dir);
  });
}

}  // namespace zoo

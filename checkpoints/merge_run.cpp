#include "checkpoints/merge_run.h"

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoints/base_weights.h"
#include "checkpoints/import_run.h"
#include "checkpoints/run.h"
#include "interop/foreign_files.h"
#include "io/files.h"
#include "models/lora.h"

namespace zoo {

int64_t merge_adapters_of(const Run& run) {
  load_base(run.dir(), run.model(), BaseCheck::hash);
  return merge_adapters(run.model());
}

MergedRun merge_run(const std::filesystem::path& run_dir, const std::filesystem::path& out,
                    const std::filesystem::path& base) {
  if (is_adapter(run_dir)) return {.run_dir = out, .n_adapters = import_run(run_dir, out, base).n_adapters};
  if (!base.empty())
    throw UsageError(fmt::format("{}: is no adapter of PEFT, so it has no base", run_dir.string()));
  if (is_there(out))
    throw UsageError(fmt::format("{}: exists already; name another directory", out.string()));
  auto experiment = read_run_experiment(run_dir);
  if (!experiment.training.lora)
    throw UsageError(
        fmt::format("{}: has no adapters to merge: it was trained without training.lora", run_dir.string()));
  const auto run = Run::open(run_dir);
  const MergedRun merged{.run_dir = out, .n_adapters = merge_adapters_of(run)};
  experiment.training.lora.reset();
  write_run(out, experiment, run.task().vocabulary(), run.model());
  return merged;
}

}  // namespace zoo

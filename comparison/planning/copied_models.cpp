#include "comparison/planning/copied_models.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoints/run.h"
#include "checkpoints/stored_model.h"
#include "comparison/planning/plan.h"
#include "io/files.h"
#include "io/safetensors.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

void copy_model(const fs::path& source, const fs::path& to, const Experiment& experiment) {
  if (experiment.training.lora) {
    const auto run = Run::open(source);
    return write_run(to, experiment, run.task().vocabulary(), run.model());
  }
  const auto stored = open_stored_model(source);
  write_run(to, experiment, stored.task->vocabulary(),
            [&](const fs::path& made) { copy_safetensors(made / "model.safetensors", *stored.tensors); });
}

/// Whether a copy with this configuration is there; removes another one.
bool is_kept(const fs::path& copy, const std::string& config) {
  if (!is_there(copy)) return false;
  if (has_subdirectory(copy) && is_run(copy) && read_file(copy / "config.yaml", Follow::nothing) == config)
    return true;
  std::error_code error;
  fs::remove_all(copy, error);
  if (error) throw SystemError(fmt::format("cannot remove '{}': {}", copy.string(), error.message()));
  return false;
}

}  // namespace

void evaluate_on(Comparison& comparison, const std::vector<std::string>& files) {
  for (auto& variant : comparison.variants) {
    auto& data = variant.experiment.data;
    data.train.assign(files.begin(), files.end());
    data.valid = data.train;
    data.test.clear();
    for (auto& finished : variant.finished) finished.source = finished.dir;
  }
  const auto has_lengths = [](const Variant& variant) { return task_type(variant.experiment).has_lengths; };
  if (comparison.variants.empty() || !std::ranges::all_of(comparison.variants, has_lengths)) return;
  const auto length = [](const Variant& variant) { return variant.experiment.data.sequence_length; };
  const int64_t shortest = length(*std::ranges::min_element(comparison.variants, {}, length));
  for (auto& variant : comparison.variants) variant.experiment.data.sequence_length = shortest;
}

void copy_models(Comparison& comparison, const fs::path& dir) {
  for (auto& variant : comparison.variants) {
    for (auto& [run, seed, source] : variant.finished) {
      if (source.empty()) continue;
      make_directory(dir);
      make_subdirectory(dir / "models");
      const auto parent = dir / "models" / slug_of(variant.name);
      make_subdirectory(parent);
      run = parent / fmt::format("seed-{}", seed);
      if (!is_kept(run, dump_config(variant.experiment))) copy_model(source, run, variant.experiment);
    }
  }
}

}  // namespace zoo

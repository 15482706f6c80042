#include "comparison/planning/copied_models.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoints/run.h"
#include "checkpoints/stored_model.h"
#include "comparison/planning/kept_json.h"
#include "comparison/planning/plan.h"
#include "io/files.h"
#include "io/safetensors.h"
#include "models/families/families.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSource = "source.json";  // in a copy: the key of what it is a copy of

/// What a copy depends on.
Json key_of(const fs::path& source, const TensorSource& tensors, const Experiment& experiment) {
  std::error_code ignored;
  const fs::path weights = tensors.place();
  return {{"source", fs::weakly_canonical(source, ignored).string()},
          {"weights", weights.filename().string()},
          {"bytes", fs::file_size(weights, ignored)},
          {"written", fs::last_write_time(weights, ignored).time_since_epoch().count()},
          {"config", dump_config(experiment)}};
}

/// Makes the copy unless it is there.
void copy_model(const fs::path& source, const fs::path& to, const Experiment& experiment,
                const std::function<void(const std::string& line)>& on_message) {
  const auto stored = open_stored_model(source);
  const auto key = key_of(source, *stored.tensors, experiment);
  if (has_subdirectory(to) && read_kept(to / kSource, key) == true) return;
  if (const auto note = weights_note(source); note && on_message) on_message(*note);
  std::error_code error;
  fs::remove_all(to, error);
  if (error) throw SystemError(fmt::format("cannot remove '{}': {}", to.string(), error.message()));
  if (experiment.training.lora) {
    write_run(to, experiment, stored.task->vocabulary(), Run::open(source).model());
  } else {
    write_run(to, experiment, stored.task->vocabulary(),
              [&](const fs::path& made) { copy_safetensors(made / "model.safetensors", *stored.tensors); });
  }
  keep(to / kSource, key, true);
}

/// Makes a finished model one of the task choices.
void ask_choices(Variant& variant, const GivenData& given) {
  auto& experiment = variant.experiment;
  const auto& type = experiment.task.type;
  const bool is_translator =
      type == "text_to_text" && shape_of(experiment.model) == FamilyShape::encoder_decoder;
  if (type != "language_modeling" && type != "choices" && !is_translator) {
    throw UsageError(fmt::format("{}: --choices is for models that write, and this one is for the task {}",
                                 variant.name, type));
  }
  experiment.task = task_types().select("choices");
  // Keys of the other task say nothing about this one.
  DataConfig data;
  data.tokenizer = experiment.data.tokenizer;
  data.sequence_length = experiment.data.sequence_length;
  data.choices.shots = given.shots;
  data.choices.shots_from.assign(given.shots_from.begin(), given.shots_from.end());
  experiment.data = std::move(data);
  experiment.training.best_by = "loss";
}

}  // namespace

void evaluate_on(Comparison& comparison, const GivenData& given) {
  for (auto& variant : comparison.variants) {
    if (!given.choices.empty()) ask_choices(variant, given);
    auto& data = variant.experiment.data;
    const auto& files = given.choices.empty() ? given.files : given.choices;
    data.train.assign(files.begin(), files.end());
    data.valid = data.train;
    data.test.clear();
    data.document_column = given.document_column;
    for (auto& finished : variant.finished) finished.source = finished.dir;
  }
  const auto has_lengths = [](const Variant& variant) {
    return task_type(variant.experiment).rows == BatchRows::windows_of_any_length;
  };
  if (comparison.variants.empty()) return;
  // Of questions the whole context is read; the length is that at which costs are counted.
  if (given.choices.empty() && !std::ranges::all_of(comparison.variants, has_lengths)) return;
  const auto length = [](const Variant& variant) { return variant.experiment.data.sequence_length; };
  const int64_t shortest = length(*std::ranges::min_element(comparison.variants, {}, length));
  for (auto& variant : comparison.variants) variant.experiment.data.sequence_length = shortest;
}

void copy_models(Comparison& comparison, const fs::path& dir,
                 const std::function<void(const std::string& line)>& on_message) {
  const auto slugs = slugs_of(comparison.variants);
  for (size_t i = 0; i < slugs.size(); ++i) {
    auto& variant = comparison.variants[i];
    for (auto& [run, seed, source] : variant.finished) {
      if (source.empty()) continue;
      make_directory(dir);
      make_subdirectory(dir / "models");
      const auto parent = dir / "models" / slugs[i];
      make_subdirectory(parent);
      run = parent / fmt::format("seed-{}", seed);
      copy_model(source, run, variant.experiment, on_message);
    }
  }
}

}  // namespace zoo

#include "experiments/load_experiment.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoints/stored_model.h"
#include "io/config/find_config.h"
#include "io/config/owned_keys.h"
#include "models/families/families.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

/// Takes the keys that weights and vocabulary of a run belong to. The corpora and the training are not among
/// them.
void inherit(const Experiment& source, Experiment& defaults) {
  defaults.task = source.task;
  defaults.model = source.model;
  auto& data = defaults.data;
  data.tokenizer = source.data.tokenizer;
  data.answer_mark = source.data.answer_mark;
  data.sequence_length = source.data.sequence_length;
  data.target_length = source.data.target_length;
  data.prefix_length = source.data.prefix_length;
  data.images.size = source.data.images.size;
  if (source.task.type == "image_text_similarity") {  // whose weights stay good for what they were trained on
    data.images.fit = source.data.images.fit;
    data.images.resize_to = source.data.images.resize_to;
    data.images.filter = source.data.images.filter;
    data.images.transparency = source.data.images.transparency;
  }
  data.images.max_size = source.data.images.max_size;
  data.images.padding = source.data.images.padding;
  data.images.channels = source.data.images.channels;
}

}  // namespace

std::optional<std::filesystem::path> find_source(const Experiment& experiment) {
  if (!experiment.init_from) return std::nullopt;
  return find_path(*experiment.init_from, is_stored_model);
}

Experiment experiment_of_source(const ConfigPath& init_from) {
  Experiment named;
  named.init_from = init_from;
  const auto dir = find_source(named);
  if (!dir)
    throw ConfigError(fmt::format("init_from: {}: no such run{}; {}", init_from.text, places_of(init_from),
                                  how_to_get_model(init_from.text)));
  return read_stored_experiment(*dir);
}

namespace {

/// The defaults of `generation:` for the task of `first`, which `file` describes.
GenerationConfig usual_generation_for(const ConfigFile& file, const Experiment& first) {
  const auto sets = [&](const char* key) { return file.sets(std::string("generation.") + key); };
  const auto of_sampling = {"top_k", "top_p", "min_p", "typical_p", "epsilon_cutoff", "eta_cutoff"};
  if (sets("temperature") ? first.generation.temperature > 0 : std::ranges::any_of(of_sampling, sets))
    return usual_generation(UsualSearch::sampling);
  auto usual = usual_generation(task_type(first).search);
  if (usual.beam == 1) return usual;
  usual.beam = sets("prompt_lookup") ? 1 : std::max(usual.beam, first.generation.num_samples);
  return usual;
}

/// `defaults` with the values of the task, and of the source or the family, for the keys that `file` does not
/// set.
Experiment defaults_for(const ConfigFile& file, Experiment defaults) {
  auto first = defaults;
  file.read(first);  // to know the task, the source and the family
  const auto& family = model_families().at(first.model.architecture);
  const auto set_own = [&](ModelConfig& model) {
    if (family.set_defaults) family.set_defaults(model);
  };
  if (const auto dir = find_source(first)) {
    const auto source = read_stored_experiment(*dir);
    auto around = defaults.model;
    set_own(around);
    const bool is_other = first.model.architecture.type != source.model.architecture.type;
    if (is_other && family.take_inner && family.take_inner(source.model, around)) {
      defaults.model = around;
    } else {
      inherit(source, defaults);
      if (!file.sets("task")) first.task = defaults.task;
    }
  } else {
    set_own(defaults.model);
  }
  defaults.generation = usual_generation_for(file, first);
  return defaults;
}

}  // namespace

namespace {

/// The value of a key (dotted) as text; nothing if the configuration has no such key.
std::optional<std::string> value_of(const Experiment& experiment, const std::string& key) {
  const auto values = flatten(experiment);
  const auto found = std::ranges::find(values, key, &ConfigValue::key);
  return found == values.end() ? std::nullopt : std::optional(found->value);
}

}  // namespace

Experiment read_experiment(const ConfigFile& file, Experiment defaults) {
  auto experiment = defaults_for(file, std::move(defaults));
  file.read(experiment);
  check_owned_keys(file, experiment, [&](const std::string& key) {
    return value_of(experiment, key) != value_of(Experiment(), key);
  });
  pin_paths(experiment);
  const bool lacks_source = experiment.init_from && !find_source(experiment);
  validate(experiment, [&](std::string_view key, std::string_view problem) {
    // A key that the source would have given is no mistake of the file.
    if (lacks_source && !file.sets(key) && key != "init_from")
      file.fail("init_from",
                fmt::format("{}: no such run{}; {}", experiment.init_from->text,
                            places_of(*experiment.init_from), how_to_get_model(experiment.init_from->text)));
    file.fail(key, problem);
  });
  return experiment;
}

Experiment load_experiment(const std::filesystem::path& path, const std::vector<std::string>& overrides) {
  const auto file = find_config(path.string());
  Experiment defaults;
  defaults.name = file.stem().string();
  return read_experiment(ConfigFile::load(file, overrides), std::move(defaults));
}

Experiment parse_experiment(std::string_view text, std::string_view name,
                            const std::vector<std::string>& overrides) {
  const Experiment defaults;
  return read_experiment(ConfigFile::parse(text, name, overrides), defaults);
}

}  // namespace zoo

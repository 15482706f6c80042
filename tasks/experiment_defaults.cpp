#include "tasks/experiment_defaults.h"

#include "io/files.h"
#include "models/families/families.h"

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
  data.images.max_size = source.data.images.max_size;
  data.images.padding = source.data.images.padding;
  data.images.channels = source.data.images.channels;
}

}  // namespace

std::optional<std::filesystem::path> find_source(const Experiment& experiment) {
  if (!experiment.init_from) return std::nullopt;
  return find_path(*experiment.init_from,
                   [](const std::filesystem::path& path) { return has_file(path / "config.yaml"); });
}

Experiment defaults_for(const ConfigFile& file, Experiment defaults) {
  auto first = defaults;
  file.read(first);  // to know the run and the family
  if (const auto dir = find_source(first)) {
    inherit(load_complete_experiment(*dir / "config.yaml"), defaults);
    return defaults;
  }
  const auto& family = model_families().at(first.model.architecture);
  if (family.set_defaults) family.set_defaults(defaults.model);
  return defaults;
}

}  // namespace zoo

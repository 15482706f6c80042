#pragma once
// A whole configuration: the data, the model, how to train it, and how to generate from it.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_config.h"
#include "generation/generation_config.h"
#include "io/config/registry.h"
#include "models/families/model_keys.h"
#include "tasks/training_config.h"

namespace zoo {

struct Experiment {
  std::string name = "unnamed";
  Selection task = Selection("language_modeling");  // one of task_types()
  std::optional<ConfigPath> init_from;              // a run whose weights and vocabulary this one starts with
  DataConfig data;
  ModelConfig model;
  TrainingConfig training;
  GenerationConfig generation;
};
void describe(ConfigVisitor& v, Experiment& c);
/// Checks each part, and whether the parts fit together.
void validate(const Experiment& c, const Complain& complain);

/// Reads and checks a configuration; each override is `dotted.key=value`. `path` is a file, or the name of a
/// configuration that comes with the program (io/config/find_config.h). Without a key `name` of its own the
/// experiment has the name of the file: "gpt2" for configs/models/gpt2.yaml. Paths of files and runs that are
/// there are pinned (io/config/config_path.h). Throws ConfigError.
Experiment load_experiment(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});
/// Reads the configuration of a run: complete, so it extends no other, and a file, not a link. Throws
/// ConfigError.
Experiment load_complete_experiment(const std::filesystem::path& path);
Experiment parse_experiment(std::string_view text, std::string_view name,
                            const std::vector<std::string>& overrides = {});
/// Keys that `file` does not set are as in `defaults`, or as the run that `init_from` names or the family of
/// the model has them (tasks/experiment_defaults.h).
Experiment read_experiment(const ConfigFile& file, Experiment defaults);
/// Pins the paths of files and runs that are there.
void pin_paths(Experiment& experiment);

/// A key and its value as text. Different values have different texts.
struct ConfigValue {
  std::string key;  // dotted
  std::string value;
};
/// All keys of a configuration, in the order of describe().
std::vector<ConfigValue> flatten(Experiment experiment);

}  // namespace zoo

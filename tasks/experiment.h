#pragma once
// A whole configuration: the data, the model, how to train it, and how to generate from it or
// make vectors.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_config.h"
#include "generation/generation_config.h"
#include "io/config/registry.h"
#include "models/families/model_keys.h"
#include "tasks/embedding_config.h"
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
  EmbeddingConfig embedding;
};
void describe(ConfigVisitor& v, Experiment& c);
/// Checks each part, and whether the parts fit together.
void validate(const Experiment& c, const Complain& complain);

/// Reads the configuration of a run: complete, so it extends no other, and a file, not a link. Throws
/// ConfigError.
Experiment load_complete_experiment(const std::filesystem::path& path);
/// Reads a complete configuration from a text; `name` stands for its path in messages. Throws ConfigError.
Experiment parse_complete_experiment(std::string_view text, std::string_view name);
/// Checks an experiment that was read from `file`. Throws ConfigError, which names the place in the file.
void check_experiment(const ConfigFile& file, const Experiment& experiment);
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

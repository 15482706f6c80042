#pragma once
// A whole configuration: what to train on, which model, how, and how to generate from it.

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_config.h"
#include "generation/generation_config.h"
#include "models/model_config.h"
#include "training/config/training_config.h"

namespace zoo {

/// A new task is a file in training/tasks/ and a line in training/tasks/task.cpp.
enum class TaskKind { language_modeling, masked_language_modeling, text_to_text, text_classification };
constexpr auto config_names(TaskKind) {
  return std::to_array<std::string_view>(
      {"language_modeling", "masked_language_modeling", "text_to_text", "text_classification"});
}

struct Experiment {
  std::string name = "unnamed";
  TaskKind task = TaskKind::language_modeling;
  std::optional<std::string> init_from;  // the run whose weights and vocabulary are begun with
  DataConfig data;
  ModelConfig model;
  TrainingConfig training;
  GenerationConfig generation;
};
void describe(ConfigVisitor& v, Experiment& c);
/// Checks each part, and that the parts fit together.
void validate(const Experiment& c, const Complain& complain);

/// Reads and checks a configuration; each override is `dotted.key=value`. A file that gives no name names the
/// experiment itself: "gpt2" for configs/models/gpt2.yaml. Throws ConfigError.
Experiment load_experiment(const std::filesystem::path& path, const std::vector<std::string>& overrides = {});
Experiment parse_experiment(std::string_view text, std::string_view name,
                            const std::vector<std::string>& overrides = {});
/// Keys that `file` does not set stay as they are in `defaults`.
Experiment read_experiment(const ConfigFile& file, Experiment defaults = {});

/// One key and its value, as text that differs wherever the values differ.
struct ConfigValue {
  std::string key;  // dotted
  std::string value;
};
/// Every key of a configuration, in the order of their description.
std::vector<ConfigValue> flatten(Experiment experiment);

}  // namespace zoo

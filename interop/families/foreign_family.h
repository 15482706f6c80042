#pragma once
// Families of published models in the form of Hugging Face transformers. A family is one file in
// interop/families: how its config.json and our configuration say the same, and how its tensors are named.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "interop/families/foreign_config.h"
#include "interop/families/tensor_rules.h"
#include "tasks/experiment.h"

namespace zoo {

/// A class of transformers, and the task (task_types()) that uses such a model here.
struct ForeignClass {
  std::string name;  // "LlamaForCausalLM"
  std::string task;  // "language_modeling"
};

struct ForeignFamily {
  std::string model_type;  // of config.json
  std::string doc;         // what it is, in a few words
  std::vector<ForeignClass> classes;
  /// Sets to.model, and what else the family's config.json says. The task is set. Throws CheckpointError for
  /// what our modules do not compute.
  void (*read)(ForeignConfig& from, Experiment& to);
  /// Sets the keys of config.json that describe from.model. It need not check that the family can express the
  /// model: what is written is read again and compared.
  void (*write)(const Experiment& from, nlohmann::json& to);
  /// The names of the tensors of a model that has this configuration.
  TensorRules (*rules)(const Experiment& experiment) = nullptr;
  /// In place of `rules`, if names also depend on how config.json, an object, says the same.
  TensorRules (*rules_of_file)(const Experiment& experiment, const nlohmann::json& config) = nullptr;
};

}  // namespace zoo

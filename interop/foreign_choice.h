#pragma once
// The family of published models that computes what a model does.

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "interop/foreign_model.h"
#include "tasks/task.h"
#include "tokenizers/hub/text_frame.h"

namespace zoo {

/// A family with the config.json that describes the model.
struct ChosenFamily {
  const ForeignFamily* family = nullptr;
  nlohmann::json config;
};

/// The first of these families that computes what the task's model does. The family of the directory that the
/// model came from is tried first. Throws ConfigError, which names the nearest family and the keys that it
/// has otherwise.
ChosenFamily choose_family(const Task& task, std::span<const ForeignFamily* const> families);

/// A key of a configuration with two values.
struct KeyDifference {
  std::string key, wanted, expressed;
};

/// The keys of the model that have other values; those that do not change what it computes are left out.
/// `head`: of `wanted`.
std::vector<KeyDifference> model_differences(const Experiment& wanted, const Experiment& expressed,
                                             HeadKind head);

/// What stands around a text in the task's inputs.
TextFrame frame_of_task(const Task& task);

}  // namespace zoo

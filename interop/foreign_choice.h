#pragma once
// The family of published models that computes what a model does.

#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "data/text/hub/text_frame.h"
#include "interop/foreign_model.h"
#include "tasks/task.h"

namespace zoo {

/// A family with the config.json that describes the model.
struct ChosenFamily {
  const ForeignFamily* family = nullptr;
  nlohmann::json config;
};

/// The first of these families that computes what the task's model does. The family of the directory that the
/// model came from is tried first. Throws ConfigError, which says for each family which key of the model it
/// lacks.
ChosenFamily choose_family(const Task& task, std::span<const ForeignFamily* const> families);

/// The first key of the model that has another value; empty if all that matter are equal. `head`: of
/// `wanted`.
std::string model_difference(const Experiment& wanted, const Experiment& expressed, HeadKind head);

/// What stands around a text in the task's inputs.
TextFrame frame_of_task(const Task& task);

}  // namespace zoo

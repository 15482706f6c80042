#pragma once
// The task of an adapter of PEFT: the class of transformers that it was made for.

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "interop/families/foreign_family.h"
#include "interop/peft/adapted_tensors.h"

namespace zoo {

/// PEFT's task_type of models for a task of ours; empty if it has none.
std::string_view peft_task_of(std::string_view task);

/// Changes config.json of the base: the class becomes the one that the adapter was made for, with as many
/// labels as the classifier of the adapter has. `place`: of adapter_config.json. Throws CheckpointError: the
/// family has no such models, or the base has no classifier and the adapter brings none.
void follow_adapter(const Adapter& adapter, const std::string& place, const ForeignFamily& family,
                    nlohmann::json& config);

}  // namespace zoo

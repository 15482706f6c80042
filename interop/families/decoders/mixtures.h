#pragma once
// What families with mixtures of experts share.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "interop/families/foreign_family.h"
#include "models/config/model_config.h"

namespace zoo {

/// The number of experts and of those that work for a token, and the factor on the loss of balance.
ExpertsConfig read_expert_counts(ForeignConfig& from, std::string_view count_key, int64_t count,
                                 int64_t active);
/// Those of a model. A model without experts is written as one with usual experts, and so is found to be none
/// of these families.
ExpertsConfig experts_or_usual(const Experiment& experiment);
/// The tensors of experts below `theirs`, where a matrix of ours is a stack of theirs, and the router "gate".
/// `names`: of gate, up and down there.
void add_experts(const ModelConfig& model, const std::string& theirs, const std::array<std::string, 3>& names,
                 TensorRules& rules);

}  // namespace zoo

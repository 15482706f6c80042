#include "optimizers/parameters.h"

#include <algorithm>
#include <map>

#include <torch/utils.h>

#include "base/text.h"
#include "layers/weights/weights.h"
#include "models/name_patterns.h"

namespace zoo {
namespace {

ParameterRole role_of(WeightUse use) {
  switch (use) {
    case WeightUse::hidden:
    case WeightUse::query:
    case WeightUse::residual_output:
    case WeightUse::convolution:
      return ParameterRole::hidden_matrix;
    case WeightUse::token_table:
    case WeightUse::table:
    case WeightUse::object_table:
    case WeightUse::distance_table:
      return ParameterRole::embedding;
    case WeightUse::scores:
    case WeightUse::lm_head:
    case WeightUse::modulation:
      break;
  }
  return ParameterRole::other_matrix;
}

struct Matrices {
  ParameterRole role;  // of the first one
  std::vector<int64_t> rows;
};

/// What the modules say of the matrices in their parameters.
std::map<const c10::TensorImpl*, Matrices> matrices_of(const torch::nn::Module& module) {
  std::map<const c10::TensorImpl*, Matrices> matrices;
  for (const auto& part : module.modules()) {
    const auto* owner = dynamic_cast<const WeightOwner*>(part.get());
    if (!owner) continue;
    std::map<const c10::TensorImpl*, Matrices> own;
    owner->visit_weights([&](const Weight& weight) {
      const auto entry = own.try_emplace(weight.parameter.unsafeGetTensorImpl(), role_of(weight.use));
      entry.first->second.rows.push_back(weight.count);
    });
    matrices.merge(own);  // a parameter that several modules share is described by the first one
  }
  return matrices;
}

}  // namespace

std::vector<Parameter> parameters_of(const torch::nn::Module& module) {
  const auto matrices = matrices_of(module);
  std::vector<Parameter> parameters;
  for (const auto& item : module.named_parameters()) {
    const auto& tensor = item.value();
    if (!tensor.requires_grad()) continue;
    const auto found = matrices.find(tensor.unsafeGetTensorImpl());
    if (tensor.dim() < 2) {
      parameters.push_back({item.key(), tensor, ParameterRole::vector});
    } else if (found == matrices.end()) {
      parameters.push_back({item.key(), tensor, ParameterRole::other_matrix});
    } else {
      auto& [role, rows] = found->second;
      parameters.push_back({item.key(), tensor, role, rows.size() > 1 ? rows : std::vector<int64_t>()});
    }
  }
  return parameters;
}

void apply_groups(const std::vector<ParameterGroupConfig>& groups, std::vector<Parameter>& parameters) {
  if (groups.empty()) return;
  std::vector<std::string> patterns, names;
  for (const auto& group : groups) patterns.push_back(group.pattern);
  for (const auto& parameter : parameters) names.push_back(parameter.name);
  require_matches("training.parameter_groups", patterns, names, "trained parameter");
  for (auto& parameter : parameters) {
    const auto group = std::ranges::find_if(
        groups, [&](const auto& one) { return matches_pattern(one.pattern, parameter.name); });
    if (group == groups.end()) continue;
    parameter.lr_factor = group->lr_factor;
    parameter.weight_decay = group->weight_decay;
  }
}

}  // namespace zoo

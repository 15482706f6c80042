#include "training/optimizers/parameters.h"

#include <map>

#include <torch/utils.h>

#include "layers/weights/weights.h"

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
    case WeightUse::distance_table:
      return ParameterRole::embedding;
    case WeightUse::scores:
    case WeightUse::token_scores:
      break;
  }
  return ParameterRole::other_matrix;
}

/// The roles that the modules give their weights.
std::map<const c10::TensorImpl*, ParameterRole> roles_of(const torch::nn::Module& module) {
  std::map<const c10::TensorImpl*, ParameterRole> roles;
  for (const auto& part : module.modules()) {
    const auto* owner = dynamic_cast<const WeightOwner*>(part.get());
    if (!owner) continue;
    owner->visit_weights([&](const Weight& weight) {
      roles.emplace(weight.parameter.unsafeGetTensorImpl(), role_of(weight.use));
    });
  }
  return roles;
}

}  // namespace

std::vector<Parameter> parameters_of(const torch::nn::Module& module) {
  const auto roles = roles_of(module);
  std::vector<Parameter> parameters;
  for (const auto& item : module.named_parameters()) {
    const auto& tensor = item.value();
    if (!tensor.requires_grad()) continue;
    const auto found = roles.find(tensor.unsafeGetTensorImpl());
    const auto role = tensor.dim() < 2       ? ParameterRole::vector
                      : found == roles.end() ? ParameterRole::other_matrix
                                             : found->second;
    parameters.push_back({item.key(), tensor, role});
  }
  return parameters;
}

}  // namespace zoo

#include "training/optimizers/parameters.h"

#include <map>

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include "layers/attention.h"
#include "layers/embedding.h"
#include "models/heads.h"

namespace zoo {
namespace {

/// The roles that the modules give to their tensors. A tensor keeps the first that it gets, and modules come
/// before their parts: a head knows better than the linear layer in it.
class Roles {
 public:
  explicit Roles(const torch::nn::Module& module) {
    for (const auto& part : module.modules(/*include_self=*/false)) visit(*part);
  }

  ParameterRole of(const torch::Tensor& tensor) const {
    if (tensor.dim() < 2) return ParameterRole::vector;
    const auto found = roles_.find(tensor.unsafeGetTensorImpl());
    return found == roles_.end() ? ParameterRole::other_matrix : found->second;
  }

 private:
  void visit(torch::nn::Module& part) {
    if (const auto* head = part.as<ModelHeadImpl>()) {
      if (!head->classifier.is_empty()) give(head->classifier->weight, ParameterRole::other_matrix);
    } else if (const auto* linear = part.as<torch::nn::LinearImpl>()) {
      give(linear->weight, ParameterRole::hidden_matrix);
    } else if (const auto* tokens = part.as<TokenEmbeddingImpl>()) {
      give(tokens->weight, ParameterRole::embedding);
    } else if (const auto* table = part.as<torch::nn::EmbeddingImpl>()) {
      give(table->weight, ParameterRole::embedding);
    } else if (const auto* attention = part.as<AttentionImpl>()) {
      give(attention->relative_keys, ParameterRole::embedding);
      give(attention->relative_values, ParameterRole::embedding);
    }
  }

  void give(const torch::Tensor& tensor, ParameterRole role) {
    if (tensor.defined()) roles_.emplace(tensor.unsafeGetTensorImpl(), role);
  }

  std::map<const c10::TensorImpl*, ParameterRole> roles_;
};

}  // namespace

std::vector<Parameter> parameters_of(const torch::nn::Module& module) {
  const Roles roles(module);
  std::vector<Parameter> parameters;
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    parameters.push_back({item.key(), item.value(), roles.of(item.value())});
  }
  return parameters;
}

}  // namespace zoo

#include "models/observation_scope.h"

#include <memory>

#include "base/error.h"
#include "models/folding_model.h"

namespace zoo {

std::vector<std::shared_ptr<StackImpl>> stacks_of(const torch::nn::Module& model) {
  std::vector<std::shared_ptr<StackImpl>> stacks;
  for (const auto& module : model.modules())
    if (auto stack = std::dynamic_pointer_cast<StackImpl>(module)) stacks.push_back(std::move(stack));
  return stacks;
}

ObservationScope::ObservationScope(Model& model, ActivationObserver& observer) : stacks_(stacks_of(model)) {
  if (stacks_.empty() || dynamic_cast<FoldingModel*>(&model))
    throw UsageError(
        "the layers of this model have no activations with names: choose a model with a stack of transformer "
        "layers, such as a decoder, an encoder, an encoder_decoder or a vit");
  for (const auto& stack : stacks_)
    if (stack->is_observed())
      throw UsageError("the model is observed already: end the other ObservationScope");
  for (const auto& stack : stacks_) stack->observe(&observer, side_of(*stack, stacks_.size()));
}

ObservationScope::~ObservationScope() {
  for (const auto& stack : stacks_) stack->observe(nullptr, StackSide::only);
}

StackSide side_of(const StackImpl& stack, size_t n_stacks) {
  if (n_stacks == 1) return StackSide::only;
  return stack.role() == StackRole::encoder ? StackSide::encoder : StackSide::decoder;
}

TokenEmbedders token_embedders_of(const torch::nn::Module& model) {
  const bool two_sides = stacks_of(model).size() > 1;
  TokenEmbedders embedders;
  size_t n_found = 0;
  for (const auto& module : model.modules()) {
    if (!std::dynamic_pointer_cast<EmbedderImpl>(module)) continue;
    // The encoder's is the first one; in a model that reads recordings it embeds no tokens.
    const auto side = !two_sides ? StackSide::only : n_found == 0 ? StackSide::encoder : StackSide::decoder;
    ++n_found;
    if (auto tokens = std::dynamic_pointer_cast<TokenEmbedderImpl>(module))
      embedders.emplace(side, std::move(tokens));
  }
  return embedders;
}

TokenVectorScope::TokenVectorScope(Model& model, TokenVectorObserver& observer)
    : embedders_(token_embedders_of(model)) {
  if (embedders_.empty())
    throw UsageError(
        "this model has no vectors of tokens that could be replaced: choose a decoder, an encoder or an "
        "encoder_decoder");
  for (const auto& [side, embedder] : embedders_)
    if (embedder->is_observed())
      throw UsageError("the model's vectors are observed already: end the other TokenVectorScope");
  for (const auto& [side, embedder] : embedders_) embedder->observe(&observer, side);
}

TokenVectorScope::~TokenVectorScope() {
  for (const auto& [side, embedder] : embedders_) embedder->observe(nullptr, StackSide::only);
}

}  // namespace zoo

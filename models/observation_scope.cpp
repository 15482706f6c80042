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
  for (const auto& stack : stacks_) {
    stack->observe(&observer, stacks_.size() == 1                   ? StackSide::only
                              : stack->role() == StackRole::encoder ? StackSide::encoder
                                                                    : StackSide::decoder);
  }
}

ObservationScope::~ObservationScope() {
  for (const auto& stack : stacks_) stack->observe(nullptr, StackSide::only);
}

}  // namespace zoo

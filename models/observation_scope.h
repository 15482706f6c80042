#pragma once
// Reading and replacing activations in the forward passes of a model.

#include <vector>

#include "layers/attention/activation_observer.h"
#include "models/model.h"
#include "models/stack.h"

namespace zoo {

/// While this object lives, every forward pass of the model calls the observer at each named activation
/// (layers/attention/activation_observer.h), generation included. One thread at a time may use the model
/// then. The destructor ends it, and without this object a pass has the same bits as ever.
class ObservationScope {
 public:
  /// Throws UsageError for a model without layers that have names, such as a resnet or a model that folds, or
  /// if another scope observes the model.
  ObservationScope(Model& model, ActivationObserver& observer);
  ~ObservationScope();
  ObservationScope(const ObservationScope&) = delete;
  ObservationScope& operator=(const ObservationScope&) = delete;

 private:
  std::vector<std::shared_ptr<StackImpl>> stacks_;
};

/// The stacks of a model in the order in which they compute; empty: it has no activations with names.
std::vector<std::shared_ptr<StackImpl>> stacks_of(const torch::nn::Module& model);

}  // namespace zoo

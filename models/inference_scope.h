#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include "models/model.h"

namespace zoo {

/// While it lives, the model is in evaluation mode and no gradients are recorded; then the model is as it
/// was. Not c10::InferenceMode: tables that a model makes on demand (positions) would be useless to training
/// from then on.
class InferenceScope {
 public:
  explicit InferenceScope(Model& model) : model_(model), was_training_(model.is_training()) {
    if (was_training_) model_.eval();
  }
  ~InferenceScope() {
    if (was_training_) model_.train();
  }
  InferenceScope(const InferenceScope&) = delete;
  InferenceScope& operator=(const InferenceScope&) = delete;

 private:
  torch::NoGradGuard no_grad_;
  Model& model_;
  bool was_training_;
};

}  // namespace zoo

#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include "models/model.h"

namespace zoo {

/// While this object lives, the model is in evaluation mode and no gradients are recorded. The destructor
/// restores the model's mode. c10::InferenceMode is not used, because training could not use tables that a
/// model makes in that mode on demand (positions).
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

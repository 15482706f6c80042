#pragma once

#include <torch/types.h>
#include <torch/utils.h>

#include "models/model.h"
#include "models/precision.h"

namespace zoo {

/// In which type the model computes where it is used: on a GPU that of its matrices, if they have 16 bits,
/// and float otherwise. Norms, sums and the residual stream are float in any case.
Precision precision_in_use(const Model& model);

/// While this object lives, the model is in evaluation mode, computes in precision_in_use(), and no gradients
/// are recorded. The destructor restores the model's mode. c10::InferenceMode is not used, because training
/// could not use tables that a model makes in that mode on demand (positions).
class InferenceScope {
 public:
  explicit InferenceScope(Model& model);
  ~InferenceScope();
  InferenceScope(const InferenceScope&) = delete;
  InferenceScope& operator=(const InferenceScope&) = delete;

 private:
  torch::NoGradGuard no_grad_;
  Model& model_;
  bool was_training_;
  PrecisionScope precision_;
};

}  // namespace zoo

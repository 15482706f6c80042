#pragma once

#include <vector>

#include <torch/types.h>

#include "models/model.h"

namespace zoo {

/// While this object lives, gradients do not reach the weights of a model.
class FrozenWeights {
 public:
  explicit FrozenWeights(const Model& model) {
    for (auto& parameter : model.parameters()) {
      if (!parameter.requires_grad()) continue;
      parameter.requires_grad_(false);
      trained_.push_back(parameter);
    }
  }
  ~FrozenWeights() {
    for (auto& parameter : trained_) parameter.requires_grad_(true);
  }
  FrozenWeights(const FrozenWeights&) = delete;
  FrozenWeights& operator=(const FrozenWeights&) = delete;

 private:
  std::vector<torch::Tensor> trained_;
};

}  // namespace zoo

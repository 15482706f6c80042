#pragma once
// What training minimises.

#include <torch/types.h>

#include "models/model.h"

namespace zoo {

/// The cross-entropy of `targets` (N) under model.logits(features), features (N, D), summed over the targets,
/// in nats: a scalar in float. With label smoothing ε the target distribution is (1 - ε)·one-hot + ε/V, as in
/// torch.nn.CrossEntropyLoss (Szegedy et al. 2016).
torch::Tensor cross_entropy_sum(Model& model, const torch::Tensor& features, const torch::Tensor& targets,
                                double label_smoothing = 0.0);

}  // namespace zoo

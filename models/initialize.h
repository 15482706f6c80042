#pragma once
// Initial weights.

#include <torch/nn/module.h>

#include "models/config/model_config.h"

namespace zoo {

/// Draws every weight of `model` as `config.init` says, from the default generator. Modules name the use of
/// each of their weights (layers/weights/weights.h).
void initialize(torch::nn::Module& model, const ModelConfig& config);

}  // namespace zoo

#pragma once
// How weights start.

#include "layers/embedding.h"
#include "models/model.h"

namespace zoo {

/// The table that the configuration and the vocabulary ask for.
TokenEmbedding make_token_embedding(const ModelConfig& config, const ModelPurpose& purpose);

/// Draws every weight of `model` as `config.init` says, from the default generator.
void initialize(torch::nn::Module& model, const ModelConfig& config);

}  // namespace zoo

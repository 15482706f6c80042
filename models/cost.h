#pragma once
// What a model costs, layer by layer, computed from its configuration alone: nothing is allocated, so that
// models larger than the machine can be looked at.

#include <cstdint>
#include <string>
#include <vector>

#include "models/model.h"

namespace zoo {

/// The cost of one module.
struct LayerCost {
  std::string name;            // its path, as in a checkpoint: "decoder.layers.0.self_attention"
  std::string kind;            // "self-attention", "feed-forward", "norm", "embedding", …
  std::string shape;           // what it maps: "768 → 3072 → 768"
  int64_t parameters = 0;      // trainable numbers; a tied matrix counts once, where it stands
  double flops_per_token = 0;  // forward pass, a multiply-add = 2; per token of the sequence it works on
  int64_t activation_bytes_per_token = 0;  // float32 kept for the backward pass, with fused attention
};

struct ModelCost {
  std::vector<LayerCost> layers;
  int64_t parameters = 0;
  /// Forward pass per token read; in an encoder-decoder a source and a target of equal length share the cost.
  /// Training costs three times this.
  double flops_per_token = 0;
  int64_t weight_bytes = 0;                // float32
  int64_t training_bytes = 0;              // weights, gradients and the two moments of Adam, float32
  int64_t activation_bytes_per_token = 0;  // per token read, as the FLOPs
  int64_t cache_bytes_per_token = 0;       // keys and values of all layers, float32
};

/// The shapes of one batch, padding included: what the hardware computes.
struct PassShape {
  int64_t batch_size = 1;      // B
  int64_t length = 0;          // T of what the encoder, or a decoder-only model, reads
  int64_t decoder_length = 0;  // of what the decoder of an encoder-decoder reads
  int64_t n_targets = 0;       // N: where something is predicted
};
PassShape pass_shape(const Batch& batch);

/// FLOPs of one forward pass: matrix products alone, a multiply-add = 2, attention over all T·S pairs
/// whatever the mask hides (as PyTorch's FlopCounterMode counts). Forward and backward pass together cost
/// three times this.
double forward_flops(const ModelConfig& config, const ModelPurpose& purpose, const PassShape& shape);

/// The cost at sequences of `length` tokens (attention grows with it). `purpose.vocab_size` may be 0 if the
/// configuration has one of its own. Throws ConfigError as make_model does.
ModelCost model_cost(const ModelConfig& config, const ModelPurpose& purpose, int64_t length);

}  // namespace zoo

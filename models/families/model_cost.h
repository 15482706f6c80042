#pragma once
// The cost of a model, computed from its configuration alone: the sum of the entries of
// layers/weights/cost.h.

#include <cstdint>
#include <string>
#include <vector>

#include "models/families/families.h"

namespace zoo {

/// The cost of one module.
struct LayerCost {
  std::string name;            // its path, as in a checkpoint: "decoder.layers.0.self_attention"
  std::string kind;            // "self-attention", "feed-forward", "norm", "embedding", …
  std::string shape;           // input and output widths: "768 → 3072 → 768"
  int64_t parameters = 0;      // a tied matrix counts once, in the module that owns it
  double flops_per_token = 0;  // forward pass, a multiply-add = 2; per token of the sequence it works on
  int64_t activation_bytes_per_token = 0;  // float32 kept for the backward pass, with fused attention
  int64_t state_bytes_per_token = 0;       // float32 cache in generation
  int64_t state_bytes = 0;                 // float32 of a sequence in generation, whatever its length
};

struct ModelCost {
  std::vector<LayerCost> layers;
  int64_t parameters = 0;
  int64_t active_parameters = 0;  // without the experts that do not work for a token
  /// Forward pass per token read. In an encoder-decoder, source and target have equal length and both count
  /// as tokens read. Training costs three times this.
  double flops_per_token = 0;
  int64_t weight_bytes = 0;                // float32
  int64_t training_bytes = 0;              // weights, gradients and the two moments of Adam, float32
  int64_t activation_bytes_per_token = 0;  // per token read, like the FLOPs
  int64_t cache_bytes_per_token = 0;       // self-attention cache of all layers that generate, float32
  int64_t state_bytes = 0;                 // running states of these layers, for each sequence, float32
};

PassShape pass_shape(const Batch& batch);

/// The number of parameters of a model: those of its modules, which are built without memory for their
/// numbers (layers/weights/construction.h). It is a double, because a configuration may ask for more than any
/// number of 64 bits. Throws ConfigError as initialized_model() does.
double parameter_count(const ModelConfig& config, const ModelPurpose& purpose);

/// FLOPs of one forward pass. Forward and backward pass together cost three times this.
double forward_flops(const ModelConfig& config, const ModelPurpose& purpose, const PassShape& shape);

/// The cost at sequences of `length` tokens; attention costs more per token at greater length.
/// `purpose.vocab_size` may be 0 if the configuration has its own. Throws ConfigError as initialized_model()
/// does.
ModelCost model_cost(const ModelConfig& config, const ModelPurpose& purpose, int64_t length);

/// The cost for each unit of a task (TaskType::unit): for each input, if the configuration fixes the number
/// of its vectors, as with images; otherwise for each token of sequences of `length`. All figures "per token"
/// are per unit. Models that cut images into different patches can be compared by it.
ModelCost unit_cost(const ModelConfig& config, const ModelPurpose& purpose, int64_t length);

}  // namespace zoo

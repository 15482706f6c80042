#pragma once
// A stack of transformer layers with all that stands around them: absolute positions, segments and a norm on
// the embeddings, relative positions shared by the layers, the final norm. Encoders and decoders are both
// one.

#include <vector>

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>

#include "layers/activation_checkpointing.h"
#include "layers/embedding.h"
#include "layers/kv_cache.h"
#include "layers/mask.h"
#include "layers/positions/position_bias.h"
#include "layers/positions/positions.h"
#include "layers/positions/rotary.h"
#include "layers/transformer_layer.h"
#include "models/model_config.h"

namespace zoo {

enum class StackRole {
  encoder,              // sees both sides
  decoder,              // sees the past
  decoder_with_memory,  // sees the past and an encoder's output
};

/// One call of a stack.
struct StackInput {
  torch::Tensor ids;                                // (B, T) int64
  torch::Tensor segments = {};                      // (B, T) int64 or undefined
  Mask mask = {};                                   // of self-attention, causality included
  torch::Tensor starts = {};                        // (B): left padding, or undefined
  torch::Tensor memory = {};                        // (B, S, D), decoder_with_memory
  Mask memory_mask = {};                            // of cross-attention
  KvCache* cache = nullptr;                         // extended by this call
  std::vector<torch::Tensor>* self_maps = nullptr;  // attention weights, appended
  std::vector<torch::Tensor>* cross_maps = nullptr;
};

class StackImpl : public torch::nn::Module {
 public:
  /// `token` belongs to the model, which may share it between stacks and with the output projection.
  StackImpl(const ModelConfig& config, StackRole role, const TokenEmbedding& token);
  /// (B, T, D): final hidden states. Throws DataError where a sequence is longer than learned positions
  /// reach.
  torch::Tensor forward(const StackInput& input);
  /// Takes effect where the module is training and gradients are recorded, without a cache and maps.
  void checkpoint_activations(ActivationCheckpointing what) { checkpointing_ = what; }

  std::vector<TransformerLayer> layers;
  torch::nn::Embedding position_embedding{nullptr};  // (max_positions, D)
  torch::nn::Embedding segment_embedding{nullptr};   // (n_segments, D)
  Norm embedding_norm{nullptr};
  Rotary rotary{nullptr};
  T5Bias position_bias{nullptr};
  Norm final_norm{nullptr};

 private:
  torch::Tensor embed(const StackInput& input, const PositionRange& range);
  torch::Tensor absolute_positions(const PositionRange& range, torch::Device device);
  torch::Tensor score_bias(const PositionRange& range, torch::Device device);

  ModelConfig config_;
  ActivationCheckpointing checkpointing_ = ActivationCheckpointing::none;
  std::shared_ptr<TokenEmbeddingImpl> token_;  // not registered here: it is the model's
  PositionTable sinusoids_;                    // (positions so far, D)
  torch::Tensor alibi_slopes_;                 // (H)
};

class Stack : public torch::nn::ModuleHolder<StackImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  using Impl = StackImpl;
  /// As forward(); spelt out as Attention's, for stack({.ids = ids, .mask = Mask::causal()}).
  torch::Tensor operator()(const StackInput& input) { return get()->forward(input); }
};

/// The options of one layer, from the configuration.
TransformerLayerOptions layer_options(const ModelConfig& config, StackRole role);
NormOptions norm_options(const ModelConfig& config, int64_t size);

}  // namespace zoo

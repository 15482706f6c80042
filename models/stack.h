#pragma once
// A stack of transformer layers, with the relative positions and the final norm that they share. Encoders and
// decoders are stacks. A stack reads vectors; embedders make them (models/embedder.h).

#include <memory>
#include <vector>

#include <torch/nn/modules/container/modulelist.h>

#include "kernels/cache_format.h"
#include "layers/activation_checkpointing.h"
#include "layers/attention/mask.h"
#include "layers/attention/position_bias.h"
#include "layers/attention/positions.h"
#include "layers/attention/rotary.h"
#include "layers/transformer_layer.h"
#include "models/config/model_config.h"
#include "models/decoding_state.h"
#include "models/precision.h"

namespace zoo {

class SharedModules;  // models/mixers/mixers.h

/// One call of a stack.
struct StackInput {
  torch::Tensor x;  // (B, T, D)
  /// Mask of self-attention, causality included. If rows of a state have different positions, the stack makes
  /// it causal from these positions on.
  Mask mask = {};
  torch::Tensor ids = {};               // (B, T) int64: token ids, see Embedded
  torch::Tensor layer_positions = {};   // (B or 1, T, D): see Embedded
  torch::Tensor memory = {};            // (B, S, D); for decoder_with_memory without a state
  Mask memory_mask = {};                // of cross-attention
  torch::Tensor memory_positions = {};  // (B or 1, S, D): added to the memory for keys
  DecodingState* state = nullptr;       // has layers and memories; read() has counted these tokens
  PositionRange range = {};             // with a state: the positions of these tokens
  /// The output of each layer is appended, after the final norm if there is one.
  std::vector<torch::Tensor>* layer_outputs = nullptr;
  std::vector<torch::Tensor>* layer_inputs = nullptr;  // what each layer reads is appended
  std::vector<torch::Tensor>* self_maps = nullptr;     // self-attention weights are appended
  std::vector<torch::Tensor>* cross_maps = nullptr;    // cross-attention weights are appended
};

class StackImpl : public Cloneable<StackImpl> {
 public:
  StackImpl(const ModelConfig& config, StackRole role);
  /// (B, T, D): final hidden states.
  torch::Tensor forward(const StackInput& input);
  /// Fills a new `state` with the states of the layers. If there is a `memory` (B, S, D), with rows of
  /// `lengths`, it also stores the keys and values of cross-attention.
  void begin(DecodingState& state, const torch::Tensor& memory = {}, std::vector<int64_t> lengths = {},
             const torch::Tensor& memory_positions = {});
  /// Takes effect if the module is training, gradients are recorded, and the call has neither state nor maps.
  void checkpoint_activations(ActivationCheckpointing what) { checkpointing_ = what; }
  /// The format of the residual stream in training under autocast of bfloat16; otherwise it is that of x.
  void keep_residual_in(ResidualStream format) { residual_ = format; }
  /// How the states of later begin() calls store keys and values. Does nothing for an encoder. Throws
  /// UsageError if a layer's state does not have the format.
  void store_cache(CacheFormat format);
  /// Later forward passes call `observer` at every place; null: nobody. Such a pass recomputes nothing. Use
  /// ObservationScope (models/observation_scope.h), which observes the stacks of a model. A copy of the stack
  /// is not observed.
  void observe(ActivationObserver* observer, StackSide side);
  bool is_observed() const { return observer_ != nullptr; }
  StackRole role() const { return role_; }
  /// What is added to the scores of a layer, as ScoreBiasImpl::at(); undefined: nothing.
  torch::Tensor bias_of(size_t layer, const PositionRange& range, torch::Device device) const;
  auto arguments() const { return std::tie(config_, role_); }
  void pretty_print(std::ostream& stream) const override;

  std::vector<TransformerLayer> layers;
  Rotary rotary{nullptr};
  Rotary local_rotary{nullptr};                  // of the layers with a window, if they have another base
  std::shared_ptr<ScoreBiasImpl> position_bias;  // null: scores depend on no distance, or differ by layer
  std::vector<std::shared_ptr<ScoreBiasImpl>> position_biases;  // of each layer, if they differ
  Norm final_norm{nullptr};

 protected:
  void take_settings(const torch::nn::Module& from) override;

 private:
  torch::Tensor normalised(ResidualSum& x);
  /// What layer `layer`, or what follows the last one, reads: x in the format of the residual stream, or what
  /// the observer puts in its place.
  ResidualSum before_layer(int64_t layer, ResidualSum x) const;

  bool is_local(int64_t layer) const;
  /// x, or what the observer puts in its place.
  torch::Tensor observed(ActivationKind kind, int64_t layer, const torch::Tensor& x) const;

  ModelConfig config_;
  StackRole role_;
  ActivationCheckpointing checkpointing_ = ActivationCheckpointing::none;
  ResidualStream residual_ = ResidualStream::fp32;
  CacheFormat cache_format_ = CacheFormat::fp32;
  std::shared_ptr<SharedModules> shared_;  // of the mixers
  ActivationObserver* observer_ = nullptr;
  StackSide side_ = StackSide::only;
};

class Stack : public torch::nn::ModuleHolder<StackImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  using Impl = StackImpl;
  /// As forward(), for a braced argument as in Attention: stack({.x = x, .mask = Mask::causal()}).
  torch::Tensor operator()(const StackInput& input) { return get()->forward(input); }
};

/// How a generating model stores the keys and values of the tokens that it has read, from its next state on.
/// The keys and values of a source that an encoder has read stay in fp32.
void store_cache(torch::nn::Module& model, CacheFormat format);

/// The configuration's options for rotary positions.
RotaryOptions rotary_options(const ModelConfig& config);

/// The configuration's options for a feed-forward network.
FeedForwardOptions feed_forward_options(const ModelConfig& config);

/// The configuration's options for layer `layer`.
/// Mixers keep in `shared` what they share; null: each has its own.
TransformerLayerOptions layer_options(const ModelConfig& config, StackRole role, int64_t layer,
                                      std::shared_ptr<SharedModules> shared = nullptr);

/// Adds the cost of a stack with path `name` for sequences of shape.n_queries vectors. If the stack has a
/// memory, shape.n_keys is the memory's length.
void count_stack(CostAccount& account, const std::string& name, const ModelConfig& config, StackRole role,
                 const AttentionShape& shape);

}  // namespace zoo

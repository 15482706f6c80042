#pragma once
// One layer of an encoder or a decoder: self-attention, cross-attention if there is a memory, feed-forward,
// each with a residual connection. Encoder and decoder layers differ only in options and masks.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "layers/attention/attention.h"
#include "layers/attention/mixer.h"
#include "layers/experts.h"
#include "layers/feed_forward.h"
#include "layers/residual.h"

namespace zoo {

/// Makes the mixer of a layer.
using MakeMixer = std::function<std::shared_ptr<MixerImpl>()>;

struct TransformerLayerOptions {
  TransformerLayerOptions(const AttentionOptions& self_attention, FeedForwardOptions feed_forward,
                          NormOptions norm)
      : self_attention_([options = self_attention] { return Attention(options).ptr(); }),
        feed_forward_(feed_forward),
        norm_(std::move(norm)) {}
  TransformerLayerOptions(MakeMixer self_attention, FeedForwardOptions feed_forward, NormOptions norm)
      : self_attention_(std::move(self_attention)), feed_forward_(feed_forward), norm_(std::move(norm)) {}
  /// An Attention, or a replacement for it.
  TORCH_ARG(MakeMixer, self_attention);
  TORCH_ARG(FeedForwardOptions, feed_forward);
  TORCH_ARG(NormOptions, norm);
  /// In place of the feed-forward network; absent: that network.
  TORCH_ARG(std::optional<ExpertsOptions>, experts) = std::nullopt;
  /// Absent: an encoder layer, or a layer of a decoder without encoder.
  TORCH_ARG(std::optional<AttentionOptions>, cross_attention) = std::nullopt;
  TORCH_ARG(NormPlacement, norm_placement) = NormPlacement::pre;
  /// Probability of dropping an element of a sub-layer's output.
  TORCH_ARG(double, dropout) = 0.0;
  /// As in ResidualOptions.
  TORCH_ARG(double, residual_scale) = 1.0;
  TORCH_ARG(std::optional<double>, layer_scale) = std::nullopt;
  TORCH_ARG(double, stochastic_depth) = 0.0;
  TORCH_ARG(bool, first_norm) = true;

 public:
  ResidualOptions residual() const;
};

/// The contexts of the attentions of one layer for one call.
struct LayerContext {
  AttentionContext self = {};
  /// If the layer has cross-attention, its `memory` or `remembered` must be set.
  AttentionContext cross = {};
  /// For each sub-layer in order, who sees what it adds; empty: nobody.
  std::span<const ObservedPlace> sub_layers = {};
};

class TransformerLayerImpl : public Cloneable<TransformerLayerImpl> {
 public:
  explicit TransformerLayerImpl(const TransformerLayerOptions& options);
  /// x: (B, T, D) → (B, T, D)
  torch::Tensor forward(const torch::Tensor& x, const LayerContext& context = {});
  /// The same, where the layer's last sum waits for its reader.
  ResidualSum advance(ResidualSum x, const LayerContext& context);
  void pretty_print(std::ostream& stream) const override;

  TransformerLayerOptions options;
  std::shared_ptr<MixerImpl> self_attention;
  Attention cross_attention{nullptr};
  FeedForward feed_forward{nullptr};  // this or experts
  Experts experts{nullptr};
  Residual residual{nullptr};
};

class TransformerLayer : public torch::nn::ModuleHolder<TransformerLayerImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  using Impl = TransformerLayerImpl;
  /// As forward(), for a braced context as in Attention: layer(x, {.self = {.mask = Mask::causal()}}).
  torch::Tensor operator()(const torch::Tensor& x, const LayerContext& context = {}) {
    return get()->forward(x, context);
  }
};

/// All of a layer but its mixer. shape.n_keys is the length of the memory, if there is one.
void count_transformer_layer(CostAccount& account, const std::string& name,
                             const TransformerLayerOptions& options, const AttentionShape& shape);

}  // namespace zoo

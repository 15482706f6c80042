#pragma once
// One layer of an encoder or a decoder: self-attention, cross-attention if there is a memory to look at,
// feed-forward, each within the layer's residual connection. Encoder and decoder layers differ in their
// options and masks alone.

#include <optional>

#include "layers/attention.h"
#include "layers/feed_forward.h"
#include "layers/residual.h"

namespace zoo {

struct TransformerLayerOptions {
  TransformerLayerOptions(AttentionOptions self_attention, FeedForwardOptions feed_forward, NormOptions norm)
      : self_attention_(self_attention), feed_forward_(feed_forward), norm_(norm) {}
  TORCH_ARG(AttentionOptions, self_attention);
  TORCH_ARG(FeedForwardOptions, feed_forward);
  TORCH_ARG(NormOptions, norm);
  /// Absent: an encoder layer, or that of a decoder without encoder.
  TORCH_ARG(std::optional<AttentionOptions>, cross_attention) = std::nullopt;
  TORCH_ARG(NormPlacement, norm_placement) = NormPlacement::pre;
  /// Of each sub-layer's output.
  TORCH_ARG(double, dropout) = 0.0;
};

/// What the attentions of one layer get to know about one call.
struct LayerContext {
  AttentionContext self = {};
  AttentionContext cross = {};  // its memory must be defined where the layer has cross-attention
};

class TransformerLayerImpl : public torch::nn::Module {
 public:
  explicit TransformerLayerImpl(const TransformerLayerOptions& options);
  /// x: (B, T, D) → (B, T, D)
  torch::Tensor forward(const torch::Tensor& x, const LayerContext& context = {});

  Attention self_attention{nullptr};
  Attention cross_attention{nullptr};
  FeedForward feed_forward{nullptr};
  Residual residual{nullptr};
};

class TransformerLayer : public torch::nn::ModuleHolder<TransformerLayerImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  using Impl = TransformerLayerImpl;
  /// As forward(); spelt out as Attention's, for layer(x, {.self = {.mask = Mask::causal()}}).
  torch::Tensor operator()(const torch::Tensor& x, const LayerContext& context = {}) {
    return get()->forward(x, context);
  }
};

}  // namespace zoo

#pragma once
// A transformer layer whose norms are shifted and scaled, and whose sub-layers are gated, by a condition of
// the whole row, such as the time of a diffusion: adaLN-Zero (Peebles & Xie 2023, "Scalable Diffusion Models
// with Transformers").
//
//     x + g₁ ⊙ attention((1 + s₁) ⊙ norm(x) + b₁), and the same for the feed-forward network
//
// g, s and b are a linear map of SiLU(condition), which begins as zeros: at first the layer changes nothing.

#include <memory>
#include <string>

#include "layers/transformer_layer.h"

namespace zoo {

struct ModulatedLayerOptions {
  ModulatedLayerOptions(TransformerLayerOptions layer, int64_t condition_width)
      : layer_(std::move(layer)), condition_width_(condition_width) {}
  /// Its mixer, feed-forward network, norm and dropout.
  TORCH_ARG(TransformerLayerOptions, layer);
  /// C.
  TORCH_ARG(int64_t, condition_width);
};

class ModulatedLayerImpl : public Cloneable<ModulatedLayerImpl> {
 public:
  explicit ModulatedLayerImpl(const ModulatedLayerOptions& options);
  /// x: (B, T, D); condition: (B, C) → (B, T, D)
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& condition,
                        const AttentionContext& context);
  void pretty_print(std::ostream& stream) const override;

  ModulatedLayerOptions options;
  std::shared_ptr<MixerImpl> self_attention;
  FeedForward feed_forward{nullptr};
  Norm attention_norm{nullptr}, feed_forward_norm{nullptr};
  Linear modulation{nullptr};  // C → 6D: shift, scale and gate of the attention, then of the network
};
TORCH_MODULE(ModulatedLayer);

/// The last norm of such a stack: shifted and scaled as in the layers.
class ModulatedNormImpl : public Cloneable<ModulatedNormImpl> {
 public:
  ModulatedNormImpl(const NormOptions& norm, int64_t condition_width);
  /// x: (B, T, D); condition: (B, C) → (B, T, D)
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& condition);
  auto arguments() const { return std::tuple(norm->options, modulation->n_inputs()); }

  Norm norm{nullptr};
  Linear modulation{nullptr};  // C → 2D
};
TORCH_MODULE(ModulatedNorm);

/// All of a layer but its mixer. shape: of the rows that it reads.
void count_modulated_layer(CostAccount& account, const std::string& name,
                           const ModulatedLayerOptions& options, const AttentionShape& shape);

}  // namespace zoo

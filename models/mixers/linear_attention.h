#pragma once
// Linear attention (Katharopoulos et al. 2020, "Transformers are RNNs"): the features of queries and keys are
// φ(x) = elu(x) + 1, as in the authors' fast-transformers.

#include <memory>

#include "layers/feature_attention.h"
#include "layers/projected_mixer.h"
#include "models/mixers/mixers.h"

namespace zoo {

/// With rotary positions the features are rotated above the fraction line only, so that the sum below it
/// stays positive (Su et al. 2021, RoFormer, equation 19).
class LinearAttentionImpl : public Cloneable<LinearAttentionImpl, ProjectedMixerImpl> {
 public:
  /// Throws c10::Error for a dropout, which has no weights to drop, or a scale, and as ProjectedMixerImpl.
  explicit LinearAttentionImpl(const AttentionOptions& options);
  /// x: (B, T, D) → (B, T, D). Causal if the mask is, or if there is a state.
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context = {}) override;
  /// A RunningState of the sums (B, K, Dh, Dh+1).
  std::unique_ptr<LayerState> new_state(int64_t n_rows) const override;
  void pretty_print(std::ostream& stream) const override;
};

using LinearAttention = MixerHolder<LinearAttentionImpl>;

}  // namespace zoo

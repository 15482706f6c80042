#pragma once
// Performer (Choromanski et al. 2020, "Rethinking Attention with Performers"): attention whose softmax kernel
// is estimated by positive random features, FAVOR+. With m features w_i from N(0, I) and x scaled by √scale,
// φ(x)_i = exp(w_i·x - |x|²/2)/√m, and the mean of φ(q)·φ(k) is exp(scale · q·k). The error falls as 1/√m.

#include <memory>
#include <optional>

#include "layers/feature_attention.h"
#include "layers/projected_mixer.h"
#include "models/mixers/mixers.h"

namespace zoo {

struct PerformerOptions {
  explicit PerformerOptions(const AttentionOptions& attention) : attention_(attention) {}
  /// Shaw's vectors and dropout are refused.
  TORCH_ARG(AttentionOptions, attention);
  /// m; default round(Dh·ln Dh), at least 1.
  TORCH_ARG(std::optional<int64_t>, n_features) = std::nullopt;
};

/// The default of n_features.
int64_t default_features(int64_t head_dim);

/// (m, Dh): blocks of Dh orthogonal rows, each row with the norm of a normal vector (section 2.4 of the
/// paper). Draws from the default generator.
torch::Tensor orthogonal_features(int64_t n_features, int64_t head_dim);

/// Exponents are kept small as in the authors' code: by the largest w·q of each query, and by the largest w·k
/// of all visible keys. If the mask is causal, the keys up to token t are divided by the exponential of their
/// own largest, c_t. c_t grows with t, so older keys are multiplied by exp(c_{t-1} - c_t) at each token: a
/// decay of the running sums. No output depends on a later token, and a state goes on with its c. Rotary
/// positions rotate queries and keys before φ, because their scores are estimated.
class PerformerImpl : public Cloneable<PerformerImpl, ProjectedMixerImpl> {
 public:
  explicit PerformerImpl(const PerformerOptions& options);
  /// x: (B, T, D) → (B, T, D). Causal if the mask is, or if there is a state.
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context = {}) override;
  /// A RunningState of the sums (B, K, m, Dh+1) and of c (B, K).
  std::unique_ptr<LayerState> new_state(int64_t n_rows) const override;
  auto arguments() const { return std::tie(performer_options_); }
  void pretty_print(std::ostream& stream) const override;

  /// (m, Dh): w of all heads. A buffer, drawn once and saved with the model.
  torch::Tensor features;

 private:
  struct Exponents;
  Exponents exponents(const torch::Tensor& x) const;

  PerformerOptions performer_options_;
};

using Performer = MixerHolder<PerformerImpl>;

}  // namespace zoo

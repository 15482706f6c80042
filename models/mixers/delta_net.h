#pragma once
// Gated DeltaNet (Yang et al. 2024, "Gated Delta Networks: Improving Mamba2 with Delta Rule"), as in
// flash-linear-attention's GatedDeltaNet and in Qwen3-Next. The rule itself is in delta_rule.h.

#include <memory>
#include <optional>

#include "layers/attention/qkv_projections.h"
#include "layers/short_convolution.h"
#include "layers/weights/linear.h"
#include "layers/weights/norm.h"
#include "models/mixers/mixers.h"

namespace zoo {

struct DeltaNetOptions {
  DeltaNetOptions(int64_t d_model, int64_t n_heads) : d_model_(d_model), n_heads_(n_heads) {}
  TORCH_ARG(int64_t, d_model);
  /// Value heads H, each with a sum of its own.
  TORCH_ARG(int64_t, n_heads);
  /// Heads of queries and keys, a divisor of H; default H. Each serves H/n_key_heads value heads.
  TORCH_ARG(std::optional<int64_t>, n_key_heads) = std::nullopt;
  /// Dh of queries, keys and values; default D/H, which requires that H divides D.
  TORCH_ARG(std::optional<int64_t>, head_dim) = std::nullopt;
  TORCH_ARG(Projection, projection) = Projection::separate;
  TORCH_ARG(bool, qkv_bias) = false;
  /// Default: qkv_bias. It can differ only if the maps are separate.
  TORCH_ARG(std::optional<bool>, key_bias) = std::nullopt;

 public:
  bool has_key_bias() const { return key_bias_.value_or(qkv_bias_); }
  TORCH_ARG(bool, out_bias) = false;
  /// Taps of the convolution over queries, keys and values; 0 = none.
  TORCH_ARG(int64_t, n_taps) = 4;
  /// Whether β reaches from 0 to 2 in place of 1, so that a sum can also turn what it remembers into its
  /// opposite, which counting modulo two needs (Grazzi et al. 2025, "Unlocking State-Tracking in Linear RNNs
  /// Through Negative Eigenvalues").
  TORCH_ARG(bool, negative_eigenvalues) = false;
  /// Whether the sums decay. Without, this is DeltaNet (Yang et al. 2024b), α = 1.
  TORCH_ARG(bool, gated) = true;
  /// Whether the normalised outputs are multiplied by SiLU of a projection of x.
  TORCH_ARG(bool, output_gate) = true;
  TORCH_ARG(double, norm_eps) = 1e-6;
};

/// q, k, v = SiLU(convolution(Wx)), with q and k of length 1 and q/√Dh; β = sigmoid(W_β x);
/// log α = -exp(A_log) · softplus(W_a x + dt_bias); output W_o (RMSNorm(y) ⊙ SiLU(W_z x)). Only causal, and
/// without weights of tokens. It needs no positions and ignores rotary ones, as Qwen3-Next's. q and k: D →
/// H_k·Dh; v: D → H·Dh.
class DeltaNetImpl : public Cloneable<DeltaNetImpl, QkvProjectionsImpl> {
 public:
  explicit DeltaNetImpl(const DeltaNetOptions& options);
  /// x: (B, T, D) → (B, T, D). Throws c10::Error if the mask is not causal and there is no state.
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context = {}) override;
  /// A RunningState of the sums (B, H, Dh, Dh) and, with a convolution, its last inputs (B, n_taps-1, C).
  std::unique_ptr<LayerState> new_state(int64_t n_rows) const override;
  void pretty_print(std::ostream& stream) const override;

  int64_t n_key_heads() const { return n_key_heads_; }

  DeltaNetOptions options;
  ShortConvolution conv{nullptr};  // over the channels of queries, keys and values in this order
  Linear beta{nullptr};            // D → H
  Linear decay{nullptr};           // D → H; if gated
  torch::Tensor a_log, dt_bias;    // (H), the parameters A_log and dt_bias; if gated
  Linear gate{nullptr};            // D → H·Dh; if output_gate
  Norm norm{nullptr};              // over Dh

 private:
  void make_decay();

  int64_t n_key_heads_;
};

using DeltaNet = MixerHolder<DeltaNetImpl>;

}  // namespace zoo

#pragma once
// A short causal convolution between two gates, as in LFM2 (Amini et al. 2025; Lfm2ShortConv of
// transformers). It sees the last few tokens only, and costs next to nothing: a control for other mixers, and
// what hybrids put between layers of attention.

#include <memory>

#include "layers/short_convolution.h"
#include "layers/weights/linear.h"
#include "models/mixers/mixers.h"

namespace zoo {

struct GatedConvolutionOptions {
  explicit GatedConvolutionOptions(int64_t d_model) : d_model_(d_model) {}
  TORCH_ARG(int64_t, d_model);
  /// Tokens of a sum, the own one included; at least 1.
  TORCH_ARG(int64_t, n_taps) = 3;
  TORCH_ARG(bool, in_bias) = false;
  TORCH_ARG(bool, out_bias) = false;
};

/// b, c, v = W_in x; output W_out (c ⊙ convolution(b ⊙ v)). Only causal, and without weights of tokens. It
/// needs no positions and ignores rotary ones.
class GatedConvolutionImpl : public Cloneable<GatedConvolutionImpl, MixerImpl> {
 public:
  explicit GatedConvolutionImpl(const GatedConvolutionOptions& options);
  /// x: (B, T, D) → (B, T, D). Throws c10::Error if the mask is not causal and there is no state.
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context = {}) override;
  /// A RunningState of the convolution's last inputs (B, n_taps-1, D).
  std::unique_ptr<LayerState> new_state(int64_t n_rows) const override;
  auto arguments() const { return std::tie(options); }
  void pretty_print(std::ostream& stream) const override;

  GatedConvolutionOptions options;
  Linear in{nullptr};  // D → 3D
  ShortConvolution conv{nullptr};
  Linear out{nullptr};  // D → D
};

using GatedConvolution = MixerHolder<GatedConvolutionImpl>;

}  // namespace zoo

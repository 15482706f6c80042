#pragma once
// The short causal convolution in front of a recurrent mixer (Yang et al. 2024; Mamba): each channel is a
// weighted sum of its own last few values.

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights/module.h"

namespace zoo {

struct ShortConvolutionOptions {
  ShortConvolutionOptions(int64_t n_channels, int64_t n_taps) : n_channels_(n_channels), n_taps_(n_taps) {}
  TORCH_ARG(int64_t, n_channels);
  /// Values of a sum, the token's own included; at least 1.
  TORCH_ARG(int64_t, n_taps);
};

/// y_t = Σ_i weight_i ⊙ x_{t - n_taps + 1 + i}. No bias. Initial weights as in torch.nn.Conv1d.
class ShortConvolutionImpl : public Cloneable<ShortConvolutionImpl> {
 public:
  explicit ShortConvolutionImpl(const ShortConvolutionOptions& options);

  struct Result {
    torch::Tensor output;   // (B, T, C)
    torch::Tensor history;  // (B, n_taps-1, C): the last inputs of each row
  };
  /// x: (B, T, C), with the `history` of each row, or undefined for zeros. `counts` (B): the tokens of each
  /// row, which are not padding; undefined = T.
  Result forward(const torch::Tensor& x, const torch::Tensor& history = {}, const torch::Tensor& counts = {});
  void pretty_print(std::ostream& stream) const override;

  ShortConvolutionOptions options;
  torch::Tensor weight;  // (C, n_taps)
};
TORCH_MODULE(ShortConvolution);

}  // namespace zoo

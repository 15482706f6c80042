#pragma once
// Positions that are found in the vectors themselves.

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights/cost.h"
#include "layers/weights/module.h"
#include "layers/weights/weights.h"

namespace zoo {

/// Makes a vector for each place from the vectors around it, to be added to that of the place. A model whose
/// places see all others may have it. Programs may add their own kinds to position_types()
/// (models/config/layer_types.h).
class FoundPositionsImpl : public Module {
 public:
  /// x: (B, T, D), zeros where there is padding. Returns (B, T, D).
  virtual torch::Tensor forward(const torch::Tensor& x) = 0;
};

struct ConvolutionalPositionsOptions {
  explicit ConvolutionalPositionsOptions(int64_t d_model) : d_model_(d_model) {}
  TORCH_ARG(int64_t, d_model);
  /// K: the places that the kernel reads.
  TORCH_ARG(int64_t, kernel_size) = 128;
  /// G: so many groups of neighbouring numbers, each of which reads itself only; a divisor of D.
  TORCH_ARG(int64_t, groups) = 16;
};

/// GELU(conv(x)) over the places, with weight norm (Salimans & Kingma 2016) over the kernel's places, as in
/// wav2vec 2.0 (Baevski et al. 2020, section 2; Mohamed et al. 2019). Place t reads x from t - ⌊K/2⌋ on, and
/// zeros beyond the ends. With an even K it reads one place less after it than before it.
///   direction (D, D/G, K)  begins with normal values of variance 4/(K·D)
///   gain (K)               the norm of the weights of each of the kernel's places; begins as that of
///                          `direction`
///   bias (D)               begins as zeros
class ConvolutionalPositionsImpl : public Cloneable<ConvolutionalPositionsImpl, FoundPositionsImpl>,
                                   public WeightOwner {
 public:
  explicit ConvolutionalPositionsImpl(const ConvolutionalPositionsOptions& options);
  torch::Tensor forward(const torch::Tensor& x) override;
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  ConvolutionalPositionsOptions options;
  torch::Tensor direction, gain, bias;
};

/// Adds the cost of ConvolutionalPositions with path `name` for `n_tokens` vectors.
void count_convolutional_positions(CostAccount& account, const std::string& name,
                                   const ConvolutionalPositionsOptions& options, double n_tokens);

/// x + found(x), where padding is zeros before and after. x: (B, T, D); lengths: (B) int64, undefined = no
/// padding.
torch::Tensor with_found_positions(FoundPositionsImpl& found, const torch::Tensor& x,
                                   const torch::Tensor& lengths);

}  // namespace zoo

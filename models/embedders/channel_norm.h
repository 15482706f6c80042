#pragma once
// Normalisation of the channels of images. Other norms are over the last dimension (layers/weights/norm.h).
//   batch         γ ⊙ (x-μ)/√(σ²+ε) + β; μ, σ² of each channel over all rows and pixels of the batch in
//                 training, running means of them in evaluation (Ioffe & Szegedy 2015; torch.nn.BatchNorm2d)
//   frozen_batch  the same formula with fixed numbers: γ, β, μ and σ² are buffers (DETR's FrozenBatchNorm2d)
//   group         μ, σ² of each row over the pixels of a group of channels (Wu & He 2018; torch.nn.GroupNorm)

#include <array>
#include <string_view>

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights/cost.h"
#include "layers/weights/module.h"

namespace zoo {

enum class ChannelNormKind { batch, frozen_batch, group };
constexpr auto config_names(ChannelNormKind) {
  return std::to_array<std::string_view>({"batch", "frozen_batch", "group"});
}

struct ChannelNormOptions {
  explicit ChannelNormOptions(int64_t n_channels) : n_channels_(n_channels) {}
  /// 32, or the largest divisor of n_channels below it.
  int64_t n_groups() const;

  TORCH_ARG(int64_t, n_channels);
  TORCH_ARG(ChannelNormKind, kind) = ChannelNormKind::batch;
  TORCH_ARG(double, eps) = 1e-5;
  /// batch: the part of a new mean in the running mean.
  TORCH_ARG(double, momentum) = 0.1;
};

class ChannelNormImpl : public Cloneable<ChannelNormImpl> {
 public:
  explicit ChannelNormImpl(const ChannelNormOptions& options);
  /// (B, C, H, W) → (B, C, H, W). In training, batch changes its running means, and throws ConfigError if a
  /// channel has a single number, which has no variance.
  torch::Tensor forward(const torch::Tensor& x);
  /// Whether the output of a row depends on the other rows of the batch: batch in training.
  bool mixes_rows() const { return options.kind() == ChannelNormKind::batch && is_training(); }
  void pretty_print(std::ostream& stream) const override;

  ChannelNormOptions options;
  torch::Tensor weight, bias;               // (C) each: γ, β; parameters, or buffers of frozen_batch
  torch::Tensor running_mean, running_var;  // (C) each, buffers; batch and frozen_batch
};
TORCH_MODULE(ChannelNorm);

/// Whether the backward pass needs the input of a norm.
constexpr bool keeps_input(ChannelNormKind kind) { return kind != ChannelNormKind::frozen_batch; }

/// Adds the cost of a norm over `n_rows` images. The layer that makes the input counts the part of it
/// that the norm keeps. `n_kept` numbers of each channel of the output are kept for the backward pass of what
/// follows.
void count_channel_norm(CostAccount& account, std::string name, const ChannelNormOptions& options,
                        double n_rows, double n_kept);

}  // namespace zoo

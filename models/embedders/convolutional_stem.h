#pragma once
// A few convolutions in place of a vision transformer's patches (Xiao et al. 2021, "Early Convolutions Help
// Transformers See Better"), and residual blocks between them if wanted. Small models need fewer images with
// it.

#include <vector>

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "models/embedders/resnet.h"

namespace zoo {

struct ConvolutionalStemOptions {
  ConvolutionalStemOptions(int64_t n_channels, int64_t d_model, int64_t patch_size)
      : n_channels_(n_channels), d_model_(d_model), patch_size_(patch_size) {}
  /// log₂ P convolutions of 3 × 3 pixels with stride 2. The last one has D channels, and each of the others
  /// half as many as the next.
  std::vector<ConvolutionOptions> layers() const;
  /// The blocks after the convolution `layer`.
  ResnetBlockOptions block(const ConvolutionOptions& layer) const;

  /// Channels of the images.
  TORCH_ARG(int64_t, n_channels);
  TORCH_ARG(int64_t, d_model);
  /// P, a power of two from 2 on. D is a multiple of P/2.
  TORCH_ARG(int64_t, patch_size);
  /// Residual blocks of two 3 × 3 convolutions after each of these convolutions. The result is then the
  /// features of a small residual network, as in the hybrids of Dosovitskiy et al. 2021, section 3.1.
  TORCH_ARG(int64_t, n_blocks) = 0;
  /// The norm after each convolution.
  TORCH_ARG(ChannelNormKind, norm) = ChannelNormKind::group;
};

class ConvolutionalStemImpl : public Cloneable<ConvolutionalStemImpl> {
 public:
  explicit ConvolutionalStemImpl(const ConvolutionalStemOptions& options);
  /// images: (B, C, H, W) with sides that are multiples of P → (B, D, H/P, W/P). After each convolution there
  /// is a norm, and ReLU.
  torch::Tensor forward(const torch::Tensor& images);
  /// Whether the output of a row depends on the other rows of the batch, see ChannelNorm.
  bool mixes_rows() const { return layers.front()->norm->mixes_rows(); }

  ConvolutionalStemOptions options;
  std::vector<ConvolutionWithNorm> layers;
  std::vector<ResnetBlock> blocks;  // n_blocks after each layer
};
TORCH_MODULE(ConvolutionalStem);

/// Adds the cost of a stem with path `name` for `batch_size` images that give `n_patches` each.
void count_convolutional_stem(CostAccount& account, const std::string& name,
                              const ConvolutionalStemOptions& options, int64_t batch_size, int64_t n_patches);

}  // namespace zoo

#pragma once
// A convolution over images, without a bias, as in networks whose norms have one.

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights/cost.h"
#include "layers/weights/module.h"
#include "layers/weights/weights.h"

namespace zoo {

struct ConvolutionOptions {
  ConvolutionOptions(int64_t n_inputs, int64_t n_outputs, int64_t kernel_size)
      : n_inputs_(n_inputs), n_outputs_(n_outputs), kernel_size_(kernel_size) {}
  /// The height or width of the output for one of the input.
  int64_t output_size(int64_t input_size) const { return (input_size - 1) / stride_ + 1; }
  int64_t padding() const { return dilation_ * (kernel_size_ - 1) / 2; }

  /// Channels of the input and of the output.
  TORCH_ARG(int64_t, n_inputs);
  TORCH_ARG(int64_t, n_outputs);
  /// K: the kernel reads K × K pixels; odd. padding() zeros stand on each side of an image.
  TORCH_ARG(int64_t, kernel_size);
  TORCH_ARG(int64_t, stride) = 1;
  /// The distance between the pixels that the kernel reads.
  TORCH_ARG(int64_t, dilation) = 1;
};

/// The parameter `weight` (O, I, K, K) begins with normal values of variance 2/(O·K²) (He et al. 2015,
/// fan-out and ReLU), as in torchvision's networks. `model.init` does not change it. Optimisers treat it as
/// an (O, I·K²) matrix.
class ConvolutionImpl : public Cloneable<ConvolutionImpl>, public WeightOwner {
 public:
  explicit ConvolutionImpl(const ConvolutionOptions& options);
  /// (B, I, H, W) → (B, O, (H-1)/stride + 1, (W-1)/stride + 1)
  torch::Tensor forward(const torch::Tensor& x);
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  ConvolutionOptions options;
  torch::Tensor weight;
};
TORCH_MODULE(Convolution);

/// Images (B, C, H, W) as convolutions read them fastest: on the CPU, the channels of a pixel are beside each
/// other.
torch::Tensor laid_out_for_convolutions(const torch::Tensor& images);

/// Adds the cost of a convolution whose output has `n_pixels`, over all rows. Products with the zeros around
/// an image count, too, as in PyTorch's FlopCounterMode. `n_kept` numbers of each channel of the output are
/// kept for the backward pass: n_pixels, or 0 if what follows does not need them.
void count_convolution(CostAccount& account, std::string name, const ConvolutionOptions& options,
                       double n_pixels, double n_kept);

}  // namespace zoo

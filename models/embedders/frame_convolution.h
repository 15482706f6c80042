#pragma once
// A convolution over the frames of a recording.

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/weights/cost.h"
#include "layers/weights/module.h"
#include "layers/weights/weights.h"

namespace zoo {

struct FrameConvolutionOptions {
  FrameConvolutionOptions(int64_t n_inputs, int64_t n_outputs) : n_inputs_(n_inputs), n_outputs_(n_outputs) {}
  /// The number of outputs for `n_frames` frames.
  int64_t output_size(int64_t n_frames) const {
    return (n_frames + 2 * padding_ - kernel_size_) / stride_ + 1;
  }

  /// Numbers of a frame of the input (I) and of the output (O).
  TORCH_ARG(int64_t, n_inputs);
  TORCH_ARG(int64_t, n_outputs);
  /// K: the frames that the kernel reads.
  TORCH_ARG(int64_t, kernel_size) = 3;
  TORCH_ARG(int64_t, stride) = 1;
  /// So many zeros stand on each side of a recording.
  TORCH_ARG(int64_t, padding) = 1;
  TORCH_ARG(bool, bias) = true;
};

/// The parameter `weight` (O, I, K) begins with normal values of variance 2/(K·I) (He et al. 2015, fan-in),
/// `bias` (O) with zeros. `model.init` does not change them. Optimisers treat the weight as an (O, K·I)
/// matrix.
class FrameConvolutionImpl : public Cloneable<FrameConvolutionImpl>, public WeightOwner {
 public:
  explicit FrameConvolutionImpl(const FrameConvolutionOptions& options);
  /// (B, I, N) → (B, O, output_size(N))
  torch::Tensor forward(const torch::Tensor& x);
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  FrameConvolutionOptions options;
  torch::Tensor weight;
  torch::Tensor bias;  // or undefined
};
TORCH_MODULE(FrameConvolution);

/// Adds the cost of a convolution with `n_outputs` frames of output, over all rows, whose inputs and outputs
/// are kept for the backward pass of the activation that follows.
void count_frame_convolution(CostAccount& account, std::string name, const FrameConvolutionOptions& options,
                             double n_outputs);

}  // namespace zoo

#pragma once
// Residual networks (He et al. 2016): convolutions that turn an image into a map of features with more
// channels and fewer pixels. For classification (models/families/resnet.h), and below a transformer.

#include <array>
#include <string_view>
#include <vector>

#include <torch/nn/modules/container/modulelist.h>

#include "data/batch.h"
#include "io/config/describe.h"
#include "models/embedders/channel_norm.h"
#include "models/embedders/convolution.h"

namespace zoo {

/// The number of layers with weights of the published networks. 18 and 34 have blocks of two 3 × 3
/// convolutions; deeper ones have bottlenecks (1 × 1, 3 × 3, 1 × 1) with a stride in the 3 × 3 one, as in
/// torchvision and transformers ("v1.5").
enum class ResnetDepth { layers_18, layers_34, layers_50, layers_101, layers_152 };
constexpr auto config_names(ResnetDepth) {
  return std::to_array<std::string_view>({"18", "34", "50", "101", "152"});
}

/// How much smaller the image is after the first layers.
///   4  a 7 × 7 convolution with stride 2 and a 3 × 3 maximum with stride 2: the published networks
///   2  a 3 × 3 convolution with stride 2
///   1  a 3 × 3 convolution, for small images
enum class StemStride { four, two, one };
constexpr auto config_names(StemStride) { return std::to_array<std::string_view>({"4", "2", "1"}); }

/// The keys of a residual network. The defaults are ResNet-50.
struct ResnetConfig {
  ResnetDepth depth = ResnetDepth::layers_50;
  int64_t width = 64;  // channels after the first layers; the stages have width · 1, 2, 4 and 8 of them
  StemStride stem_stride = StemStride::four;
  ChannelNormKind norm = ChannelNormKind::batch;
  bool dilation = false;  // whether the last stage reads pixels further apart instead of having a stride
};
void describe(ConfigVisitor& v, ResnetConfig& c);

inline constexpr int64_t kResnetStages = 4;
/// The number of blocks of each stage.
std::array<int64_t, kResnetStages> blocks_of(ResnetDepth depth);
bool has_bottlenecks(ResnetDepth depth);
/// Channels of what a stage gives: width · 1, 2, 4 or 8, and four times that with bottlenecks.
int64_t n_outputs_of_stage(const ResnetConfig& config, int64_t stage);

struct ResnetOptions {
  ResnetOptions(int64_t n_channels, ResnetConfig config) : n_channels_(n_channels), config_(config) {}
  /// Channels of the result, which is that of the last stage.
  int64_t n_outputs() const;
  /// The side, in pixels of the image, of the place that a pixel of the result stands for.
  int64_t stride() const;

  /// Channels of the images.
  TORCH_ARG(int64_t, n_channels);
  TORCH_ARG(ResnetConfig, config);
};

/// A convolution, its norm, and ReLU if there is one.
class ConvolutionWithNormImpl : public Cloneable<ConvolutionWithNormImpl> {
 public:
  enum class After { relu, nothing };
  ConvolutionWithNormImpl(const ConvolutionOptions& options, ChannelNormKind norm, After after);
  torch::Tensor forward(const torch::Tensor& x);
  auto arguments() const { return std::tuple(convolution->options, norm->options.kind(), after_); }

  Convolution convolution{nullptr};
  ChannelNorm norm{nullptr};

 private:
  After after_;
};
TORCH_MODULE(ConvolutionWithNorm);

/// One residual block: ReLU(layers(x) + x). If the layers change the shape, x goes through a 1 × 1
/// convolution and a norm.
struct ResnetBlockOptions {
  int64_t n_inputs;
  int64_t width;  // of the 3 × 3 convolutions
  int64_t stride;
  bool bottleneck;
  ChannelNormKind norm;
  // Of the first 3 × 3 convolution, and of a second one.
  int64_t first_dilation = 1, dilation = 1;

  int64_t n_outputs() const { return bottleneck ? 4 * width : width; }
  bool changes_shape() const { return stride != 1 || n_inputs != n_outputs(); }
  std::vector<ConvolutionOptions> layers() const;
  ConvolutionOptions shortcut() const;
};

class ResnetBlockImpl : public Cloneable<ResnetBlockImpl> {
 public:
  explicit ResnetBlockImpl(const ResnetBlockOptions& options);
  torch::Tensor forward(const torch::Tensor& x);

  ResnetBlockOptions options;
  std::vector<ConvolutionWithNorm> layers;
  ConvolutionWithNorm shortcut{nullptr};  // absent if the shape stays
};
TORCH_MODULE(ResnetBlock);

/// Images within a network: their number and their size.
struct MapSize {
  int64_t batch_size, height, width;

  MapSize after(const ConvolutionOptions& options) const {
    return {batch_size, options.output_size(height), options.output_size(width)};
  }
  double n_pixels() const { return static_cast<double>(batch_size * height * width); }
};

/// Adds the cost of a ConvolutionWithNorm with path `name` whose output has `size`. `is_kept`: whether
/// something that follows keeps as many numbers for the backward pass as the norm returns, like ReLU.
void count_convolution_with_norm(CostAccount& account, const std::string& name,
                                 const ConvolutionOptions& options, ChannelNormKind norm, const MapSize& size,
                                 bool is_kept);

/// Adds the cost of a block with path `name` whose input has `size`, and returns the size of its output.
MapSize count_resnet_block(CostAccount& account, const std::string& name, const ResnetBlockOptions& options,
                           const MapSize& size);

class ResnetImpl : public Cloneable<ResnetImpl> {
 public:
  explicit ResnetImpl(const ResnetOptions& options);
  /// images: (B, C, H, W) → (B, n_outputs, h, w), with h and w as resnet_output(). Throws c10::Error for
  /// another number of channels.
  torch::Tensor forward(const torch::Tensor& images);
  int64_t n_outputs() const { return options.n_outputs(); }
  /// Whether the output of a row depends on the other rows of the batch, see ChannelNorm.
  bool mixes_rows() const { return stem->norm->mixes_rows(); }
  void pretty_print(std::ostream& stream) const override;

  ResnetOptions options;
  ConvolutionWithNorm stem{nullptr};
  std::vector<ResnetBlock> blocks;  // of all stages, in order; their names are "stages.S.I"
};
TORCH_MODULE(Resnet);

/// The shape of the output for images of the given size.
ImageShape resnet_output(const ResnetOptions& options, int64_t height, int64_t width);

/// Adds the cost of a network with path `name` for `batch_size` images.
void count_resnet(CostAccount& account, const std::string& name, const ResnetOptions& options,
                  int64_t batch_size, int64_t height, int64_t width);

}  // namespace zoo

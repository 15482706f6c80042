#include "models/embedders/resnet.h"

#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "layers/weights/description.h"

namespace zoo {

bool has_bottlenecks(ResnetDepth depth) { return depth >= ResnetDepth::layers_50; }

std::array<int64_t, kResnetStages> blocks_of(ResnetDepth depth) {
  if (depth == ResnetDepth::layers_18) return {2, 2, 2, 2};
  if (depth == ResnetDepth::layers_101) return {3, 4, 23, 3};
  if (depth == ResnetDepth::layers_152) return {3, 8, 36, 3};
  return {3, 4, 6, 3};
}

namespace {

using After = ConvolutionWithNormImpl::After;

/// How many times the channels of a block's other convolutions its last one has.
int64_t expansion_of(const ResnetConfig& config) { return has_bottlenecks(config.depth) ? 4 : 1; }

ConvolutionOptions stem_options(const ResnetOptions& options) {
  const auto& config = options.config();
  const int64_t kernel_size = config.stem_stride == StemStride::four ? 7 : 3;
  return ConvolutionOptions(options.n_channels(), config.width, kernel_size)
      .stride(config.stem_stride == StemStride::one ? 1 : 2);
}

/// The maximum after the first convolution, as if it were one.
ConvolutionOptions pool_options(const ResnetConfig& config) {
  return ConvolutionOptions(config.width, config.width, /*kernel_size=*/3).stride(2);
}

ResnetBlockOptions block_options(const ResnetOptions& options, int64_t stage, int64_t block) {
  const auto& config = options.config();
  const int64_t expansion = expansion_of(config);
  const int64_t width = config.width << stage;
  const int64_t before = stage == 0 ? config.width : width / 2 * expansion;
  const bool shrinks = block == 0 && stage > 0, dilated = config.dilation && stage == kResnetStages - 1;
  // Up to the place where a stride would be, pixels are as near to each other as before.
  return {.n_inputs = block == 0 ? before : width * expansion,
          .width = width,
          .stride = shrinks && !dilated ? 2 : 1,
          .bottleneck = has_bottlenecks(config.depth),
          .norm = config.norm,
          .first_dilation = dilated && !shrinks ? 2 : 1,
          .dilation = dilated ? 2 : 1};
}

/// Calls `visit` with stage, block and options of every block, in order.
template <class Visit>
void for_each_block(const ResnetOptions& options, const Visit& visit) {
  const auto n_blocks = blocks_of(options.config().depth);
  for (int64_t stage = 0; stage < kResnetStages; ++stage) {
    for (int64_t block = 0; block < n_blocks[static_cast<size_t>(stage)]; ++block)
      visit(stage, block, block_options(options, stage, block));
  }
}

void count_pool(CostAccount& account, std::string name, double n_numbers) {
  // The maxima, and the place of each as an integer of 64 bits.
  account.add({.name = std::move(name),
               .kind = "pooling",
               .shape = account.text("3 × 3 / 2"),
               .activation_bytes = n_numbers * static_cast<double>(kFloatBytes + 8)});
}

}  // namespace

void describe(ConfigVisitor& v, ResnetConfig& c) {
  constexpr double widest = 1 << 14;
  v.field("depth", c.depth,
          "Layers: 18 and 34 have blocks of two convolutions, the others have bottlenecks.");
  v.field("width", c.width, "Channels of the first stage; each of the four stages has twice as many.",
          Limits::between(1, widest));
  v.field("stem_stride", c.stem_stride,
          "How much smaller the first layers make an image; 4: the published ones, 2 and 1: one 3 x 3 "
          "convolution.");
  v.field(
      "norm", c.norm,
      "batch mixes the rows of a batch; frozen_batch is never trained; group is over each row by itself.");
  v.field("dilation", c.dilation,
          "The last stage keeps the size of the map, and its kernels read every second pixel (DETR-DC5).");
}

int64_t n_outputs_of_stage(const ResnetConfig& config, int64_t stage) {
  return (config.width << stage) * expansion_of(config);
}

int64_t ResnetOptions::stride() const {
  const int64_t of_stem = config_.stem_stride == StemStride::four  ? 4
                          : config_.stem_stride == StemStride::two ? 2
                                                                   : 1;
  return of_stem << (config_.dilation ? kResnetStages - 2 : kResnetStages - 1);
}

int64_t ResnetOptions::n_outputs() const { return n_outputs_of_stage(config_, kResnetStages - 1); }

ConvolutionWithNormImpl::ConvolutionWithNormImpl(const ConvolutionOptions& options, ChannelNormKind kind,
                                                 After after)
    : after_(after) {
  convolution = register_module("convolution", Convolution(options));
  norm = register_module("norm", ChannelNorm(ChannelNormOptions(options.n_outputs()).kind(kind)));
}

torch::Tensor ConvolutionWithNormImpl::forward(const torch::Tensor& x) {
  const auto y = norm(convolution(x));
  return after_ == After::relu ? y.relu_() : y;
}

std::vector<ConvolutionOptions> ResnetBlockOptions::layers() const {
  if (!bottleneck)
    return {ConvolutionOptions(n_inputs, width, 3).stride(stride).dilation(first_dilation),
            ConvolutionOptions(width, width, 3).dilation(dilation)};
  return {ConvolutionOptions(n_inputs, width, 1),
          ConvolutionOptions(width, width, 3).stride(stride).dilation(first_dilation),
          ConvolutionOptions(width, n_outputs(), 1)};
}

ConvolutionOptions ResnetBlockOptions::shortcut() const {
  return ConvolutionOptions(n_inputs, n_outputs(), 1).stride(stride);
}

ResnetBlockImpl::ResnetBlockImpl(const ResnetBlockOptions& options_) : options(options_) {
  torch::nn::ModuleList list;
  const auto all = options.layers();
  for (size_t i = 0; i < all.size(); ++i) {
    const auto after = i + 1 < all.size() ? After::relu : After::nothing;
    layers.emplace_back(all[i], options.norm, after);
    list->push_back(layers.back());
  }
  register_module("layers", list);
  if (options.changes_shape())
    shortcut =
        register_module("shortcut", ConvolutionWithNorm(options.shortcut(), options.norm, After::nothing));
}

torch::Tensor ResnetBlockImpl::forward(const torch::Tensor& x) {
  auto y = x;
  for (auto& layer : layers) y = layer(y);
  return y.add_(shortcut ? shortcut(x) : x).relu_();
}

void count_convolution_with_norm(CostAccount& account, const std::string& name,
                                 const ConvolutionOptions& options, ChannelNormKind norm, const MapSize& size,
                                 bool is_kept) {
  const double n_pixels = size.n_pixels();
  count_convolution(account, account.path(name, "convolution"), options, n_pixels,
                    keeps_input(norm) ? n_pixels : 0);
  count_channel_norm(account, account.path(name, "norm"), ChannelNormOptions(options.n_outputs()).kind(norm),
                     static_cast<double>(size.batch_size), is_kept ? n_pixels : 0);
}

MapSize count_resnet_block(CostAccount& account, const std::string& name, const ResnetBlockOptions& options,
                           const MapSize& size) {
  auto inner = size;
  int64_t i = 0;
  for (const auto& layer : options.layers()) {
    inner = inner.after(layer);
    // ReLU keeps the sum of the last layer and the shortcut.
    count_convolution_with_norm(account, account.path(name, "layers", i++), layer, options.norm, inner, true);
  }
  if (options.changes_shape())
    count_convolution_with_norm(account, account.path(name, "shortcut"), options.shortcut(), options.norm,
                                inner, false);
  return inner;
}

ResnetImpl::ResnetImpl(const ResnetOptions& options_) : options(options_) {
  stem =
      register_module("stem", ConvolutionWithNorm(stem_options(options), options.config().norm, After::relu));
  std::array<torch::nn::ModuleList, kResnetStages> stages;
  for_each_block(options, [&](int64_t stage, int64_t, const ResnetBlockOptions& block) {
    blocks.emplace_back(block);
    stages[static_cast<size_t>(stage)]->push_back(blocks.back());
  });
  torch::nn::ModuleList all;
  for (const auto& stage : stages) all->push_back(stage);
  register_module("stages", all);
}

torch::Tensor ResnetImpl::forward(const torch::Tensor& images) {
  TORCH_CHECK(images.size(1) == options.n_channels(), "images have ", images.size(1), " channels, not ",
              options.n_channels());
  auto x = stem(laid_out_for_convolutions(images));
  if (options.config().stem_stride == StemStride::four) {
    const auto pool = pool_options(options.config());
    x = torch::max_pool2d(x, pool.kernel_size(), pool.stride(), /*padding=*/1);
  }
  for (auto& block : blocks) x = block(x);
  return x;
}

void ResnetImpl::pretty_print(std::ostream& stream) const {
  const auto& config = options.config();
  stream << Description("Resnet")
                .add("n_channels", options.n_channels())
                .add("depth", config.depth)
                .add("width", config.width)
                .add("stem_stride", config.stem_stride)
                .add("norm", config.norm)
                .add("dilation", config.dilation);
}

ImageShape resnet_output(const ResnetOptions& options, int64_t height, int64_t width) {
  MapSize size = MapSize{1, height, width}.after(stem_options(options));
  if (options.config().stem_stride == StemStride::four) size = size.after(pool_options(options.config()));
  for_each_block(options, [&](int64_t, int64_t, const ResnetBlockOptions& block) {
    if (block.changes_shape()) size = size.after(block.shortcut());
  });
  return {.channels = options.n_outputs(), .height = size.height, .width = size.width};
}

void count_resnet(CostAccount& account, const std::string& name, const ResnetOptions& options,
                  int64_t batch_size, int64_t height, int64_t width) {
  auto size = MapSize{batch_size, height, width}.after(stem_options(options));
  count_convolution_with_norm(account, account.path(name, "stem"), stem_options(options),
                              options.config().norm, size, true);
  if (options.config().stem_stride == StemStride::four) {
    size = size.after(pool_options(options.config()));
    count_pool(account, account.path(name, "pool"),
               size.n_pixels() * static_cast<double>(options.config().width));
  }
  for_each_block(options, [&](int64_t stage, int64_t block, const ResnetBlockOptions& block_options) {
    const auto path = account.path(account.path(name, "stages", stage), fmt::format("{}", block));
    size = count_resnet_block(account, path, block_options, size);
  });
}

}  // namespace zoo

#include "models/embedders/convolutional_stem.h"

#include <torch/nn/modules/container/modulelist.h>
#include <torch/types.h>

namespace zoo {

std::vector<ConvolutionOptions> ConvolutionalStemOptions::layers() const {
  std::vector<ConvolutionOptions> result;
  int64_t n_inputs = n_channels_;
  for (int64_t stride = 2; stride <= patch_size_; stride *= 2) {
    const int64_t n_outputs = d_model_ * stride / patch_size_;
    result.push_back(ConvolutionOptions(n_inputs, n_outputs, /*kernel_size=*/3).stride(2));
    n_inputs = n_outputs;
  }
  return result;
}

ResnetBlockOptions ConvolutionalStemOptions::block(const ConvolutionOptions& layer) const {
  return {.n_inputs = layer.n_outputs(),
          .width = layer.n_outputs(),
          .stride = 1,
          .bottleneck = false,
          .norm = norm_};
}

ConvolutionalStemImpl::ConvolutionalStemImpl(const ConvolutionalStemOptions& options_) : options(options_) {
  torch::nn::ModuleList layer_list, block_list;
  for (const auto& layer : options.layers()) {
    layer_list->push_back(layers.emplace_back(layer, options.norm(), ConvolutionWithNormImpl::After::relu));
    for (int64_t i = 0; i < options.n_blocks(); ++i)
      block_list->push_back(blocks.emplace_back(options.block(layer)));
  }
  register_module("layers", layer_list);
  if (!blocks.empty()) register_module("blocks", block_list);
}

torch::Tensor ConvolutionalStemImpl::forward(const torch::Tensor& images) {
  auto x = laid_out_for_convolutions(images);
  auto block = blocks.begin();
  for (auto& layer : layers) {
    x = layer(x);
    for (int64_t i = 0; i < options.n_blocks(); ++i) x = (*block++)(x);
  }
  return x;
}

void count_convolutional_stem(CostAccount& account, const std::string& name,
                              const ConvolutionalStemOptions& options, int64_t batch_size,
                              int64_t n_patches) {
  const auto layers = options.layers();
  int64_t n_pixels = n_patches * options.patch_size() * options.patch_size(), n_blocks = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    n_pixels /= 4;
    // What a layer costs depends on the number of pixels alone.
    const MapSize size{.batch_size = batch_size, .height = n_pixels, .width = 1};
    count_convolution_with_norm(account, account.path(name, "layers", static_cast<int64_t>(i)), layers[i],
                                options.norm(), size, /*is_kept=*/true);
    for (int64_t block = 0; block < options.n_blocks(); ++block)
      count_resnet_block(account, account.path(name, "blocks", n_blocks++), options.block(layers[i]), size);
  }
}

}  // namespace zoo

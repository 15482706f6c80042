#include "models/vision/convolutional_stem.h"

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

ConvolutionalStemImpl::ConvolutionalStemImpl(const ConvolutionalStemOptions& options_) : options(options_) {
  torch::nn::ModuleList list;
  for (const auto& layer : options.layers()) {
    list->push_back(layers.emplace_back(layer, ChannelNormKind::group, ConvolutionWithNormImpl::After::relu));
  }
  register_module("layers", list);
}

torch::Tensor ConvolutionalStemImpl::forward(const torch::Tensor& images) {
  auto x = images;
  for (auto& layer : layers) x = layer(x);
  return x;
}

std::shared_ptr<torch::nn::Module> ConvolutionalStemImpl::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<ConvolutionalStemImpl>(options);
}

void count_convolutional_stem(CostAccount& account, const std::string& name,
                              const ConvolutionalStemOptions& options, int64_t batch_size,
                              int64_t n_patches) {
  const auto layers = options.layers();
  auto n_pixels = static_cast<double>(batch_size * n_patches * options.patch_size() * options.patch_size());
  for (size_t i = 0; i < layers.size(); ++i) {
    n_pixels /= 4;
    const auto path = account.path(name, "layers", static_cast<int64_t>(i));
    count_convolution(account, account.path(path, "convolution"), layers[i], n_pixels, n_pixels);
    count_channel_norm(account, account.path(path, "norm"),
                       ChannelNormOptions(layers[i].n_outputs()).kind(ChannelNormKind::group),
                       static_cast<double>(batch_size), n_pixels);
  }
}

}  // namespace zoo

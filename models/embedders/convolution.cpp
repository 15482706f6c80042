#include "models/embedders/convolution.h"

#include <cmath>

#include <fmt/format.h>
#include <torch/types.h>

#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {
namespace {

std::string shape_text(const ConvolutionOptions& options) {
  const int64_t K = options.kernel_size();
  auto text = fmt::format("{} → {}, {} × {}", options.n_inputs(), options.n_outputs(), K, K);
  if (options.stride() > 1) text += fmt::format(" / {}", options.stride());
  if (options.dilation() > 1) text += fmt::format(", dilated {}", options.dilation());
  return text;
}

}  // namespace

ConvolutionImpl::ConvolutionImpl(const ConvolutionOptions& options_) : options(options_) {
  const int64_t K = options.kernel_size();
  TORCH_CHECK(K % 2 == 1, "the kernel of a convolution must have an odd size, not ", K);
  const double std = std::sqrt(2.0 / static_cast<double>(options.n_outputs() * K * K));
  weight = register_parameter("weight", drawn_tensor({options.n_outputs(), options.n_inputs(), K, K},
                                                     [&](torch::Tensor& w) { w.normal_(0, std); }));
}

torch::Tensor ConvolutionImpl::forward(const torch::Tensor& x) {
  const int64_t stride = options.stride();
  // The same with less work for oneDNN 3.12 (in LibTorch 2.13): for this case and few channels, its backward
  // pass writes past the end of a buffer if the channels of a pixel are beside each other.
  if (x.is_cpu() && options.kernel_size() == 1 && stride > 1)
    return torch::conv2d(x.slice(2, 0, {}, stride).slice(3, 0, {}, stride), weight);
  return torch::conv2d(x, weight, /*bias=*/{}, stride, options.padding(), options.dilation());
}

void ConvolutionImpl::visit_weights(const WeightVisitor& visit) const {
  visit({weight, 0, weight.size(0), WeightUse::convolution});
}

void ConvolutionImpl::pretty_print(std::ostream& stream) const {
  stream << Description("Convolution")
                .add("n_inputs", options.n_inputs())
                .add("n_outputs", options.n_outputs())
                .add("kernel_size", options.kernel_size())
                .add("stride", options.stride())
                .add("dilation", options.dilation());
}

torch::Tensor laid_out_for_convolutions(const torch::Tensor& images) {
  if (!images.is_cpu()) return images;
  if (images.size(1) > 1) return images.contiguous(at::MemoryFormat::ChannelsLast);
  // One channel lies in both ways at once. Its stride tells LibTorch how the outputs shall lie.
  const int64_t height = images.size(2), width = images.size(3);
  return images.contiguous().as_strided(images.sizes(), {height * width, 1, width, 1});
}

void count_convolution(CostAccount& account, std::string name, const ConvolutionOptions& options,
                       double n_pixels, double n_kept) {
  const int64_t K = options.kernel_size();
  const int64_t weights = options.n_inputs() * options.n_outputs() * K * K;
  account.add({.name = std::move(name),
               .kind = "convolution",
               .shape = account.is_detailed() ? shape_text(options) : "",
               .flops = 2 * n_pixels * static_cast<double>(weights),
               .activation_bytes = bytes_of(n_kept, options.n_outputs())});
}

}  // namespace zoo

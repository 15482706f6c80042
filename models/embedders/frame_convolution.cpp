#include "models/embedders/frame_convolution.h"

#include <cmath>

#include <fmt/format.h>
#include <torch/types.h>

#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {

FrameConvolutionImpl::FrameConvolutionImpl(const FrameConvolutionOptions& options_) : options(options_) {
  const int64_t K = options.kernel_size();
  const double std = std::sqrt(2.0 / static_cast<double>(options.n_inputs() * K));
  weight = register_parameter("weight", drawn_tensor({options.n_outputs(), options.n_inputs(), K},
                                                     [&](torch::Tensor& w) { w.normal_(0, std); }));
  if (options.bias())
    bias = register_parameter("bias", torch::zeros({options.n_outputs()}, parameter_options()));
}

torch::Tensor FrameConvolutionImpl::forward(const torch::Tensor& x) {
  return torch::conv1d(x, weight, bias, options.stride(), options.padding());
}

void FrameConvolutionImpl::visit_weights(const WeightVisitor& visit) const {
  visit({weight, 0, weight.size(0), WeightUse::convolution});
}

void FrameConvolutionImpl::pretty_print(std::ostream& stream) const {
  stream << Description("FrameConvolution")
                .add("n_inputs", options.n_inputs())
                .add("n_outputs", options.n_outputs())
                .add("kernel_size", options.kernel_size())
                .add("stride", options.stride());
}

void count_frame_convolution(CostAccount& account, std::string name, const FrameConvolutionOptions& options,
                             double n_outputs) {
  const int64_t K = options.kernel_size();
  account.add({.name = std::move(name),
               .kind = "convolution",
               .shape = account.text("{} → {}, {} frames{}", options.n_inputs(), options.n_outputs(), K,
                                     options.stride() > 1 ? fmt::format(" / {}", options.stride()) : ""),
               .flops = 2 * n_outputs * static_cast<double>(options.n_inputs() * options.n_outputs() * K),
               .activation_bytes = bytes_of(2 * n_outputs * static_cast<double>(options.n_outputs()))});
}

}  // namespace zoo

#include "layers/found_positions.h"

#include <cmath>

#include <fmt/format.h>
#include <torch/types.h>

#include "kernels/gelu.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {
namespace {

/// The norm of the weights of each place of a kernel (D, I, K): (K).
torch::Tensor norms_of_places(const torch::Tensor& kernel) {
  return kernel.square().sum(torch::IntArrayRef({0, 1})).sqrt();
}

}  // namespace

ConvolutionalPositionsImpl::ConvolutionalPositionsImpl(const ConvolutionalPositionsOptions& options_)
    : options(options_) {
  const int64_t D = options.d_model(), K = options.kernel_size(), G = options.groups();
  TORCH_CHECK(D % G == 0, "a width of ", D, " cannot be divided into ", G, " groups");
  const double std = 2 / std::sqrt(static_cast<double>(K * D));
  direction = register_parameter(
      "direction", drawn_tensor({D, D / G, K}, [&](torch::Tensor& values) { values.normal_(0, std); }));
  gain = register_parameter("gain", drawn_tensor({K}, [&](torch::Tensor& values) {
                              values.copy_(norms_of_places(direction.detach()));
                            }));
  bias = register_parameter("bias", torch::zeros({D}, parameter_options()));
}

torch::Tensor ConvolutionalPositionsImpl::forward(const torch::Tensor& x) {
  const int64_t K = options.kernel_size();
  const auto kernel = direction * (gain / norms_of_places(direction));
  const auto found = torch::conv1d(x.transpose(1, 2), kernel.to(x.scalar_type()), bias.to(x.scalar_type()),
                                   /*stride=*/1, /*padding=*/K / 2, /*dilation=*/1, options.groups());
  // An even kernel gives one place more than there is.
  return gelu(found.narrow(2, 0, x.size(1)).transpose(1, 2).contiguous(), Phi::exact);
}

void ConvolutionalPositionsImpl::visit_weights(const WeightVisitor& visit) const {
  visit({direction, 0, direction.size(0), WeightUse::convolution});
}

void ConvolutionalPositionsImpl::pretty_print(std::ostream& stream) const {
  stream << Description("ConvolutionalPositions")
                .add("d_model", options.d_model())
                .add("kernel_size", options.kernel_size())
                .add("groups", options.groups());
}

void count_convolutional_positions(CostAccount& account, const std::string& name,
                                   const ConvolutionalPositionsOptions& options, double n_tokens) {
  const int64_t D = options.d_model(), K = options.kernel_size(), G = options.groups();
  account.add({.name = name,
               .kind = "convolution",
               .shape = account.text("{} → {}, {} places, {} groups", D, D, K, G),
               .flops = 2 * n_tokens * static_cast<double>(D * (D / G) * K),
               .activation_bytes = bytes_of(2 * n_tokens * static_cast<double>(D))});
}

torch::Tensor with_found_positions(FoundPositionsImpl& found, const torch::Tensor& x,
                                   const torch::Tensor& lengths) {
  if (!lengths.defined()) return x + found.forward(x);
  const auto is_padding =
      (torch::arange(x.size(1), lengths.options()) >= lengths.unsqueeze(1)).to(x.device()).unsqueeze(2);
  const auto visible = x.masked_fill(is_padding, 0);
  return (visible + found.forward(visible)).masked_fill(is_padding, 0);
}

}  // namespace zoo

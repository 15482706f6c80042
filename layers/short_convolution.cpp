#include "layers/short_convolution.h"

#include <cmath>

#include <torch/types.h>
#include <torch/utils.h>

#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {

ShortConvolutionImpl::ShortConvolutionImpl(const ShortConvolutionOptions& options_) : options(options_) {
  TORCH_CHECK(options.n_taps() >= 1, "a convolution has at least one tap");
  const double bound = 1 / std::sqrt(static_cast<double>(options.n_taps()));
  weight = register_parameter("weight", drawn_tensor({options.n_channels(), options.n_taps()},
                                                     [&](torch::Tensor& w) { w.uniform_(-bound, bound); }));
}

ShortConvolutionImpl::Result ShortConvolutionImpl::forward(const torch::Tensor& x,
                                                           const torch::Tensor& history,
                                                           const torch::Tensor& counts) {
  const int64_t n_rows = x.size(0), n_tokens = x.size(1), n_channels = x.size(2);
  const int64_t n_before = options.n_taps() - 1;
  const auto before = history.defined() ? history : torch::zeros({n_rows, n_before, n_channels}, x.options());
  const auto all = torch::cat({before, x}, 1);  // (B, n_taps-1+T, C)
  torch::Tensor sum;
  for (int64_t i = 0; i <= n_before; ++i) {
    const auto term = all.narrow(1, i, n_tokens) * weight.select(1, i);
    sum = sum.defined() ? sum + term : term;
  }
  Result result{.output = sum, .history = all.narrow(1, n_tokens, n_before)};
  if (counts.defined()) {
    const auto last = counts.to(x.device()).unsqueeze(1) +
                      torch::arange(n_before, torch::dtype(torch::kInt64).device(x.device()));
    result.history = all.gather(1, last.unsqueeze(-1).expand({n_rows, n_before, n_channels}));
  }
  return result;
}

void ShortConvolutionImpl::pretty_print(std::ostream& stream) const {
  stream << Description("ShortConvolution")
                .add("n_channels", options.n_channels())
                .add("n_taps", options.n_taps());
}

}  // namespace zoo

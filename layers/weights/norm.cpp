#include "layers/weights/norm.h"

#include <cmath>

#include <torch/types.h>
#include <torch/utils.h>

#include "layers/kernels/rms_norm.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {

NormImpl::NormImpl(const NormOptions& options_) : options(options_) {
  const bool centred =
      options.kind() == NormKind::layer_norm || options.kind() == NormKind::layer_norm_annotated;
  TORCH_CHECK(options.kind() != NormKind::layer_norm_annotated || options.size() > 1,
              "layer_norm_annotated needs a size of at least 2: one number has no standard deviation");
  weight = register_parameter("weight", torch::empty({options.size()}, parameter_options()));
  if (centred && options.bias())
    bias = register_parameter("bias", torch::empty({options.size()}, parameter_options()));
  reset_parameters();
}

void NormImpl::reset_parameters() {
  const torch::NoGradGuard no_grad;
  weight.fill_(options.unit_offset() ? 0.0 : 1.0);
  if (bias.defined()) bias.zero_();
}

torch::Tensor NormImpl::forward(const torch::Tensor& x) {
  const auto gain = options.unit_offset() ? weight + 1.0 : weight;
  switch (options.kind()) {
    case NormKind::layer_norm:
      return torch::layer_norm(x, {options.size()}, gain, bias, options.eps());
    case NormKind::layer_norm_annotated: {
      const auto centred = x - x.mean(-1, /*keepdim=*/true);
      const auto deviation = x.std(-1, /*unbiased=*/true, /*keepdim=*/true);
      const auto y = gain * centred / (deviation + options.eps());
      return bias.defined() ? y + bias : y;
    }
    case NormKind::rms_norm:
      return rms_norm(x, gain, options.eps());
    case NormKind::rms_norm_outside:
      // The gradient of norm() is finite where x is all zeros; the gradient of a square root is not.
      return gain * x / (x.norm(2, -1, /*keepdim=*/true) / std::sqrt(options.size()) + options.eps());
  }
  C10_THROW_ERROR(ValueError, "unknown NormKind");
}

void NormImpl::pretty_print(std::ostream& stream) const {
  stream << Description("Norm")
                .add("size", options.size())
                .add("kind", options.kind())
                .add("eps", options.eps())
                .add("bias", bias.defined());
}

void count_norms(CostAccount& account, std::string name, const NormOptions& options, int64_t count,
                 double n_tokens) {
  account.add({.name = std::move(name),
               .kind = "norm",
               .shape = count == 1 ? account.text("{}", options.size())
                                   : account.text("{} × {}", count, options.size()),
               .activation_bytes = bytes_of(n_tokens, count * options.size())});
}

}  // namespace zoo

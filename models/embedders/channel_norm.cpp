#include "models/embedders/channel_norm.h"

#include <algorithm>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"

namespace zoo {

int64_t ChannelNormOptions::n_groups() const {
  constexpr int64_t most = 32;
  int64_t n = std::min(most, n_channels_);
  while (n_channels_ % n != 0) --n;
  return n;
}

ChannelNormImpl::ChannelNormImpl(const ChannelNormOptions& options_) : options(options_) {
  const auto ones = torch::ones({options.n_channels()}, parameter_options()),
             zeros = torch::zeros({options.n_channels()}, parameter_options());
  if (options.kind() == ChannelNormKind::frozen_batch) {
    weight = register_buffer("weight", ones);
    bias = register_buffer("bias", zeros);
  } else {
    weight = register_parameter("weight", ones);
    bias = register_parameter("bias", zeros);
  }
  if (options.kind() == ChannelNormKind::group) return;
  running_mean = register_buffer("running_mean", torch::zeros({options.n_channels()}, parameter_options()));
  running_var = register_buffer("running_var", torch::ones({options.n_channels()}, parameter_options()));
}

torch::Tensor ChannelNormImpl::forward(const torch::Tensor& x) {
  switch (options.kind()) {
    case ChannelNormKind::batch:
      if (is_training() && x.numel() == x.size(1))
        throw ConfigError(
            "norm: batch in training needs more than one number of a channel, and this batch has one row and "
            "one pixel: use larger batches or images, or norm: group");
      return torch::batch_norm(x, weight, bias, running_mean, running_var, is_training(), options.momentum(),
                               options.eps(), /*cudnn_enabled=*/true);
    case ChannelNormKind::frozen_batch: {
      // In this form the backward pass needs no copy of x.
      const auto scale = weight * (running_var + options.eps()).rsqrt();
      const auto shift = bias - running_mean * scale;
      const auto type = x.scalar_type();
      return torch::addcmul(shift.to(type).view({1, -1, 1, 1}), x, scale.to(type).view({1, -1, 1, 1}));
    }
    case ChannelNormKind::group:
      return torch::group_norm(x, options.n_groups(), weight, bias, options.eps());
  }
  C10_THROW_ERROR(ValueError, "unknown ChannelNormKind");
}

void ChannelNormImpl::pretty_print(std::ostream& stream) const {
  stream << Description("ChannelNorm")
                .add("n_channels", options.n_channels())
                .add("kind", options.kind())
                .add("eps", options.eps());
}

void count_channel_norm(CostAccount& account, std::string name, const ChannelNormOptions& options,
                        double n_rows, double n_kept) {
  const bool frozen = options.kind() == ChannelNormKind::frozen_batch;
  // A mean and a deviation for each channel of the batch, or for each group of a row; a frozen norm's
  // factors.
  const double factors = options.kind() == ChannelNormKind::group
                             ? 2 * n_rows * static_cast<double>(options.n_groups())
                             : static_cast<double>((frozen ? 1 : 2) * options.n_channels());
  account.add({.name = std::move(name),
               .kind = "norm",
               .shape = account.text("{}, {}", options.n_channels(), name_of(options.kind())),
               .activation_bytes = bytes_of(factors + n_kept * static_cast<double>(options.n_channels()))});
}

}  // namespace zoo

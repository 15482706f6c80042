#include "layers/mixers/token_mlp.h"

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "layers/mixers/projected_mixer.h"
#include "layers/modules/description.h"

namespace zoo {

TokenMlpImpl::TokenMlpImpl(const TokenMlpOptions& options_) : options(options_) {
  network = register_module("network", FeedForward(options.network()));
}

torch::Tensor TokenMlpImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  TORCH_CHECK(!context.mask.is_causal() && !context.state, "an MLP over tokens cannot be causal");
  TORCH_CHECK(!context.maps, "an MLP over tokens has no weights of pairs of tokens");
  TORCH_CHECK(!context.memory.defined() && !context.remembered, "this mixer has no cross-attention");
  TORCH_CHECK(!context.bias.defined() && !context.query_positions.defined(),
              "an MLP over tokens has neither scores nor queries");
  const int64_t length = x.size(1), n_tokens = options.n_tokens();
  if (length > n_tokens) {
    throw DataError(
        fmt::format("a sequence of {} tokens is longer than the length {} of model.attention mlp: "
                    "shorten it, or set another length",
                    length, n_tokens));
  }
  auto tokens = x;
  if (const auto real = real_tokens(context, length, x.device()); real.defined())
    tokens = tokens.masked_fill(real.logical_not().unsqueeze(-1), 0);
  if (length < n_tokens) tokens = torch::constant_pad_nd(tokens, {0, 0, 0, n_tokens - length});
  const auto mixed = network(tokens.transpose(1, 2).contiguous());  // (B, D, n_tokens)
  return mixed.narrow(2, 0, length).transpose(1, 2);
}

std::unique_ptr<LayerState> TokenMlpImpl::new_state(int64_t) const {
  TORCH_CHECK(false, "an MLP over tokens does not generate");
}

std::shared_ptr<torch::nn::Module> TokenMlpImpl::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<TokenMlpImpl>(options);
}

void TokenMlpImpl::pretty_print(std::ostream& stream) const {
  stream << Description("TokenMlp")
                .add("n_tokens", options.n_tokens())
                .add("d_tokens", options.d_tokens())
                .add("dropout", options.dropout());
}

}  // namespace zoo

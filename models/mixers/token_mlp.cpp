#include "models/mixers/token_mlp.h"

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "layers/projected_mixer.h"
#include "layers/weights/description.h"
#include "models/mixers/mixer_checks.h"

namespace zoo {

TokenMlpImpl::TokenMlpImpl(const TokenMlpOptions& options_) : options(options_) {
  network = register_module("network", FeedForward(options.network()));
}

torch::Tensor TokenMlpImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  TORCH_CHECK(!context.mask.is_causal() && !context.state, "an MLP over tokens cannot be causal");
  TORCH_CHECK(!context.maps, "an MLP over tokens has no weights of pairs of tokens");
  TORCH_CHECK(!context.query_positions.defined(), "an MLP over tokens has no queries");
  require_no_scores(context);
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

void TokenMlpImpl::pretty_print(std::ostream& stream) const {
  stream << Description("TokenMlp")
                .add("n_tokens", options.n_tokens())
                .add("d_tokens", options.d_tokens())
                .add("dropout", options.dropout());
}

namespace {

// Larger than in any model, and small enough that products of such numbers do not overflow.
constexpr double kMostTokens = 1 << 20;

struct MlpKeys {
  std::optional<int64_t> length, d_tokens;
};

void describe(ConfigVisitor& v, MlpKeys& keys) {
  v.field("length", keys.length, "Tokens of a sequence, such as the patches of an image; needed.",
          Limits::between(1, kMostTokens));
  v.field("d_tokens", keys.d_tokens, "Inner width; default d_model / 2.", Limits::between(1, kMostTokens));
}

TokenMlpOptions mlp_options(const MixerPlace& place) {
  const auto& keys = place.selection().as<MlpKeys>();
  const int64_t width = std::max<int64_t>(place.model.d_model / 2, 1);
  return TokenMlpOptions(keys.length.value_or(1), keys.d_tokens.value_or(width))
      .bias(place.model.bias)
      .dropout(place.model.activation_dropout);
}

void validate_mlp(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (!place.selection().as<MlpKeys>().length)
    complain("mlp needs the number of tokens, such as {type: mlp, length: 49}");
  if (place.is_causal()) {
    complain(
        "mlp cannot be causal, because each token sees all of them: it is for encoders; in a decoder choose "
        "linear, performer, delta or full");
  }
  refuse_scores(place, MixerPositions::absolute, complain);
}

void count_token_mlp(CostAccount& account, std::string name, const MixerPlace& place,
                     const AttentionShape& shape) {
  const auto options = mlp_options(place);
  const int64_t T = options.n_tokens(), F = options.d_tokens(), weights = 2 * T * F;
  const auto n_channels = static_cast<double>(shape.batch_size * place.model.d_model);
  // The tokens of each channel beside each other, the input and output of GELU, and the result.
  const double kept = n_channels * static_cast<double>(2 * T + 2 * F);
  account.add({.name = std::move(name),
               .kind = "self-attention",
               .shape = account.text("mlp, {} → {} → {} tokens", T, F, T),
               .flops = 2 * n_channels * static_cast<double>(weights),
               .activation_bytes = bytes_of(kept)});
}

}  // namespace

MixerType mlp_mixer() {
  MixerType type;
  type.name = "mlp";
  type.doc = "MLP over a fixed number of tokens (MLP-Mixer, Tolstikhin et al. 2021); for encoders.";
  type.complexity = "nmd";
  type.make_options = options_of<MlpKeys>();
  type.make = makes<TokenMlpImpl>(mlp_options);
  type.count = count_token_mlp;
  type.validate = validate_mlp;
  type.n_tokens = [](const MixerPlace& place) { return mlp_options(place).n_tokens(); };
  type.no_maps = "has weights of places rather than of tokens";
  return type;
}

}  // namespace zoo

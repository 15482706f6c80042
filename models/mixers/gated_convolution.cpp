#include "models/mixers/gated_convolution.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "layers/projected_mixer.h"
#include "layers/running_state.h"
#include "layers/weights/description.h"
#include "models/mixers/mixer_checks.h"

namespace zoo {

GatedConvolutionImpl::GatedConvolutionImpl(const GatedConvolutionOptions& options_) : options(options_) {
  const int64_t D = options.d_model();
  in = register_module("in", Linear(LinearOptions(D, 3 * D).bias(options.in_bias())));
  conv = register_module("conv", ShortConvolution(ShortConvolutionOptions(D, options.n_taps())));
  out = register_module("out", Linear(LinearOptions(D, D).bias(options.out_bias())));
}

torch::Tensor GatedConvolutionImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  TORCH_CHECK(context.mask.is_causal() || context.state,
              "a short convolution is causal, and this mask is not");
  TORCH_CHECK(!context.maps, "a short convolution has no weights of tokens");
  TORCH_CHECK(!context.query_positions.defined(), "a short convolution has no queries");
  require_no_scores(context);
  auto* const state = dynamic_cast<RunningState*>(context.state);
  const auto counts = state && context.range ? context.range->counts() : torch::Tensor();
  const auto parts = in(x).chunk(3, -1);
  const auto result = conv->forward(parts[0] * parts[2],
                                    state ? state->tensor(0).to(x.scalar_type()) : torch::Tensor(), counts);
  if (state) state->set(0, result.history);
  return out(parts[1] * result.output);
}

std::unique_ptr<LayerState> GatedConvolutionImpl::new_state(int64_t n_rows) const {
  return std::make_unique<RunningState>(
      std::vector{empty_state(out, {n_rows, options.n_taps() - 1, options.d_model()})});
}

void GatedConvolutionImpl::pretty_print(std::ostream& stream) const {
  stream << Description("GatedConvolution").add("d_model", options.d_model()).add("n_taps", options.n_taps());
}

namespace {

struct ConvolutionKeys {
  int64_t taps = 3;
};

void describe(ConfigVisitor& v, ConvolutionKeys& keys) {
  constexpr double most = 64;
  v.field("taps", keys.taps, "Tokens of a sum, the own one included.", Limits::between(1, most));
}

GatedConvolutionOptions convolution_options(const MixerPlace& place) {
  const auto& config = place.model;
  return GatedConvolutionOptions(config.d_model)
      .n_taps(place.selection().as<ConvolutionKeys>().taps)
      .in_bias(config.qkv_bias.value_or(config.bias))
      .out_bias(config.out_bias.value_or(config.bias));
}

void validate_convolution(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (!place.is_causal()) {
    complain(
        "convolution sees only the past: it is for decoders; in an encoder choose a window, linear or full");
  }
  refuse_scores(place, MixerPositions::absolute_or_rotary, complain);
}

void count_gated_convolution(CostAccount& account, std::string name, const MixerPlace& place,
                             const AttentionShape& shape) {
  const auto options = convolution_options(place);
  const int64_t D = options.d_model();
  const double n_tokens = static_cast<double>(shape.batch_size) * static_cast<double>(shape.n_queries);
  account.add({.name = std::move(name),
               .kind = "self-attention",
               .shape = account.text("convolution over {} tokens", options.n_taps()),
               .flops = 2 * n_tokens * static_cast<double>(4 * D * D),
               .activation_bytes = bytes_of(n_tokens, (6 + options.n_taps()) * D),
               .state_bytes = (options.n_taps() - 1) * D * kFloatBytes});
}

}  // namespace

MixerType convolution_mixer() {
  MixerType type;
  type.name = "convolution";
  type.doc = "A short convolution between two gates (Amini et al. 2025, LFM2); for decoders.";
  type.complexity = "nd²";
  type.make_options = options_of<ConvolutionKeys>();
  type.make = makes<GatedConvolutionImpl>(convolution_options);
  type.count = count_gated_convolution;
  type.validate = validate_convolution;
  type.no_maps = "sees the last few tokens and has no weights of tokens";
  return type;
}

}  // namespace zoo

#include "models/mixers/delta_net.h"

#include <cmath>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "layers/delta_rule.h"
#include "layers/projected_mixer.h"
#include "layers/running_state.h"
#include "layers/running_sums.h"
#include "layers/weights/construction.h"
#include "layers/weights/description.h"
#include "models/mixers/mixer_checks.h"

namespace zoo {
namespace {

/// x/√(|x|² + ε), as in flash-linear-attention.
torch::Tensor l2_normalized(const torch::Tensor& x) {
  constexpr double eps = 1e-6;
  return x * (x.square().sum(-1, /*keepdim=*/true) + eps).rsqrt();
}

}  // namespace

DeltaNetImpl::DeltaNetImpl(const DeltaNetOptions& options_)
    : Cloneable(options_.d_model(), options_.n_heads(), options_.head_dim()),
      options(options_),
      n_key_heads_(options.n_key_heads().value_or(options.n_heads())) {
  const int64_t d_model = options.d_model(), n_heads = options.n_heads();
  TORCH_CHECK(n_heads % n_key_heads_ == 0, "n_heads ", n_heads, " is not a multiple of n_key_heads ",
              n_key_heads_);
  const int64_t key_width = n_key_heads_ * head_dim_, value_width = n_heads * head_dim_;
  const auto per_head = [&] { return Linear(LinearOptions(d_model, n_heads).bias(false)); };
  make_qkv(n_key_heads_, n_key_heads_, n_heads, options.projection(),
           {.queries_and_values = options.qkv_bias(), .keys = options.has_key_bias()});
  if (options.n_taps() > 0) {
    conv = register_module(
        "conv", ShortConvolution(ShortConvolutionOptions(2 * key_width + value_width, options.n_taps())));
  }
  beta = register_module("beta", per_head());
  if (options.gated()) {
    decay = register_module("decay", per_head());
    make_decay();
  }
  if (options.output_gate())
    gate = register_module("gate", Linear(LinearOptions(d_model, value_width).bias(false)));
  norm =
      register_module("norm", Norm(NormOptions(head_dim_).kind(NormKind::rms_norm).eps(options.norm_eps())));
  make_out(n_heads, options.out_bias());
}

/// As in flash-linear-attention: exp(A_log) is uniform in (0, 16), and softplus(dt_bias) log-uniform between
/// 0.001 and 0.1.
void DeltaNetImpl::make_decay() {
  constexpr double largest_rate = 16, shortest_step = 1e-3, longest_step = 0.1, least_step = 1e-4,
                   least_rate = 1e-3;
  const int64_t n_heads = options.n_heads();
  a_log = register_parameter("A_log", drawn_tensor({n_heads}, [&](torch::Tensor& rates) {
                               rates.uniform_(0, largest_rate).clamp_min_(least_rate).log_();
                             }));
  dt_bias = register_parameter("dt_bias", drawn_tensor({n_heads}, [&](torch::Tensor& steps) {
                                 steps.uniform_(std::log(shortest_step), std::log(longest_step));
                                 steps.exp_().clamp_min_(least_step);
                                 steps.add_((-torch::expm1(-steps)).log());  // softplus gives the steps back
                               }));
}

torch::Tensor DeltaNetImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  TORCH_CHECK(context.mask.is_causal() || context.state, "the delta rule is causal, and this mask is not");
  TORCH_CHECK(!context.maps, "the delta rule has no weights of tokens");
  require_no_scores(context);
  auto* const state = dynamic_cast<RunningState*>(context.state);
  const auto real = real_tokens(context, x.size(1), x.device());
  const auto counts = state && context.range ? context.range->counts() : torch::Tensor();
  const auto projected = project_stacked(x, context.query_positions), strength = beta(x);
  const auto rate = decay ? decay(x) : torch::Tensor();
  torch::Tensor mixed;
  {
    const FullPrecision full(x.device());
    auto channels = full(projected);
    if (conv) {
      const auto result = conv->forward(channels, state ? state->tensor(1) : torch::Tensor(), counts);
      if (state) state->set(1, result.history);
      channels = result.output;
    }
    channels = torch::silu(channels);
    const int64_t n_heads = options.n_heads(), key_width = n_key_heads_ * head_dim_;
    const auto parts = channels.split_with_sizes({key_width, key_width, n_heads * head_dim_}, -1);
    const auto for_every_head = [&](const torch::Tensor& heads) {
      return n_key_heads_ == n_heads ? heads : heads.repeat_interleave(n_heads / n_key_heads_, 1);
    };
    DeltaRuleInput input{.q = for_every_head(l2_normalized(split_heads(parts[0], n_key_heads_)) /
                                             std::sqrt(double(head_dim_))),
                         .k = for_every_head(l2_normalized(split_heads(parts[1], n_key_heads_))),
                         .v = split_heads(parts[2], n_heads),
                         .beta = torch::sigmoid(full(strength)).transpose(1, 2)};
    if (options.negative_eigenvalues()) input.beta = 2 * input.beta;
    if (decay) input.log_alpha = (-a_log.exp() * torch::softplus(full(rate) + dt_bias)).transpose(1, 2);
    if (real.defined()) {
      // Zeros, so that not even a NaN of padding reaches the sum.
      const auto padding = real.logical_not().unsqueeze(1);  // (B, 1, T)
      for (auto* const heads : {&input.k, &input.v}) *heads = heads->masked_fill(padding.unsqueeze(-1), 0);
      input.beta = input.beta.masked_fill(padding, 0);
      if (decay) input.log_alpha = input.log_alpha.masked_fill(padding, 0);
    }
    if (state) input.before = state->tensor(0);
    const auto result = delta_rule(input);
    if (state) state->set(0, result.sum);
    mixed = norm(result.output.transpose(1, 2));  // (B, T, H, Dh)
  }
  auto merged = mixed.flatten(2).to(x.scalar_type());
  if (gate) merged = merged * torch::silu(gate(x));
  if (context.heads) merged = (*context.heads)(merged.view(mixed.sizes())).flatten(2);
  return out(merged);
}

std::unique_ptr<LayerState> DeltaNetImpl::new_state(int64_t n_rows) const {
  std::vector<torch::Tensor> tensors{empty_state(out, {n_rows, options.n_heads(), head_dim_, head_dim_})};
  if (conv) tensors.push_back(empty_state(out, {n_rows, options.n_taps() - 1, conv->options.n_channels()}));
  return std::make_unique<RunningState>(std::move(tensors));
}

void DeltaNetImpl::pretty_print(std::ostream& stream) const {
  stream << Description("DeltaNet")
                .add("d_model", options.d_model())
                .add("n_heads", options.n_heads())
                .add("n_key_heads", n_key_heads_)
                .add("head_dim", head_dim_)
                .add("projection", options.projection())
                .add("n_taps", options.n_taps())
                .add("gated", options.gated())
                .add("output_gate", options.output_gate())
                .add("negative_eigenvalues", options.negative_eigenvalues());
}

namespace {

// Larger than in any model, and small enough that products of such numbers do not overflow.
constexpr double kMostHeads = 1 << 20, kMostTaps = 64;

struct DeltaKeys {
  int64_t conv = 4;
  bool gated = true, output_gate = true, negative_eigenvalues = false;
  std::optional<int64_t> key_heads;
};

void describe(ConfigVisitor& v, DeltaKeys& keys) {
  v.field("conv", keys.conv, "Taps of the causal convolution over queries, keys and values; 0 = none.",
          Limits::between(0, kMostTaps));
  v.field("gated", keys.gated, "Whether old values decay; without, this is DeltaNet.");
  v.field("output_gate", keys.output_gate, "Multiply the output by SiLU of a projection.");
  v.field("negative_eigenvalues", keys.negative_eigenvalues,
          "What is remembered may change its sign, which tracking states needs (Grazzi et al. 2025).");
  v.field("key_heads", keys.key_heads,
          "Heads of queries and keys, a divisor of n_heads; default n_heads. n_kv_heads does not count here.",
          Limits::between(1, kMostHeads));
}

DeltaNetOptions delta_options(const MixerPlace& place) {
  const auto& config = place.model;
  const auto& keys = place.selection().as<DeltaKeys>();
  return DeltaNetOptions(config.d_model, config.n_heads)
      .n_key_heads(keys.key_heads)
      .head_dim(config.head_dim)
      .projection(config.projection)
      .qkv_bias(config.qkv_bias.value_or(config.bias))
      .key_bias(config.has_key_bias())
      .out_bias(config.out_bias.value_or(config.bias))
      .n_taps(keys.conv)
      .gated(keys.gated)
      .output_gate(keys.output_gate)
      .negative_eigenvalues(keys.negative_eigenvalues)
      .norm_eps(config.norm_eps);
}

void validate_delta(const MixerPlace& place, const ComplainAboutMixer& complain) {
  if (!place.is_causal()) {
    complain(
        "delta sees only the past: it is for decoders; in an encoder choose linear, performer, linformer or "
        "full");
  }
  const int64_t n_heads = place.model.n_heads;
  const int64_t key_heads = place.selection().as<DeltaKeys>().key_heads.value_or(n_heads);
  if (n_heads % key_heads != 0)
    complain(fmt::format("delta: n_heads {} is not a multiple of key_heads {}", n_heads, key_heads));
  refuse_scores(place, MixerPositions::absolute_or_rotary, complain);
}

void count_delta_net(CostAccount& account, std::string name, const MixerPlace& place,
                     const AttentionShape& shape) {
  const auto options = delta_options(place);
  const int64_t d_model = options.d_model(), n_heads = options.n_heads();
  const int64_t n_key_heads = options.n_key_heads().value_or(n_heads);
  const int64_t head_dim = options.head_dim().value_or(d_model / n_heads);
  const int64_t width = n_heads * head_dim, channels = width + 2 * n_key_heads * head_dim;
  const int64_t n_gates = options.gated() ? 2 : 1;  // β and α
  const int64_t weights =
      d_model * (channels + n_gates * n_heads + width + (options.output_gate() ? width : 0));

  const auto n_rows = static_cast<double>(shape.batch_size);
  const double n_tokens = n_rows * static_cast<double>(shape.n_queries);
  const Chunks chunks(shape.n_queries);
  const bool one_step = shape.n_queries == 1;
  // For each token and head. A chunk: keys and queries times keys, the triangular system, what the tokens
  // write; and three products with the sum before the chunk. A step: two products with the sum.
  const int64_t products =
      one_step ? 2 * head_dim * head_dim : 4 * chunks.length * head_dim + 3 * head_dim * head_dim;
  const double rule = n_rows * chunks.tokens() * static_cast<double>(n_heads * products);
  const int64_t kept = 3 * channels + (options.output_gate() ? 3 : 2) * width + 8 * width +
                       3 * n_heads * chunks.length + width * head_dim / chunks.length + d_model;
  const int64_t state =
      width * head_dim + (options.n_taps() > 0 ? (options.n_taps() - 1) * channels : int64_t{0});
  account.add({.name = std::move(name),
               .kind = "self-attention",
               .shape = account.text("delta, {} heads of {}, {} for keys", n_heads, head_dim, n_key_heads),
               .flops = 2 * (n_tokens * static_cast<double>(weights) + rule),
               .activation_bytes = bytes_of(n_tokens, kept),
               .state_bytes = state * kFloatBytes});
}

}  // namespace

MixerType delta_mixer() {
  MixerType type;
  type.name = "delta";
  type.doc = "The gated delta rule (Yang et al. 2024, Gated DeltaNet); for decoders.";
  type.complexity = "nd²";
  type.make_options = options_of<DeltaKeys>();
  type.make = makes<DeltaNetImpl>(delta_options);
  type.count = count_delta_net;
  type.validate = validate_delta;
  type.no_maps = "remembers a sum of the past and has no weights of tokens";
  return type;
}

}  // namespace zoo

#include "layers/mixers/delta_net.h"

#include <cmath>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "layers/mixers/delta_rule.h"
#include "layers/mixers/projected_mixer.h"
#include "layers/mixers/running_state.h"
#include "layers/modules/description.h"

namespace zoo {
namespace {

/// x/√(|x|² + ε), as in flash-linear-attention.
torch::Tensor l2_normalized(const torch::Tensor& x) {
  constexpr double eps = 1e-6;
  return x * (x.square().sum(-1, /*keepdim=*/true) + eps).rsqrt();
}

}  // namespace

DeltaNetImpl::DeltaNetImpl(const DeltaNetOptions& options_)
    : options(options_), n_key_heads_(options.n_key_heads().value_or(options.n_heads())) {
  const int64_t d_model = options.d_model(), n_heads = options.n_heads();
  TORCH_CHECK(options.head_dim() || d_model % n_heads == 0, "d_model ", d_model,
              " is not a multiple of n_heads ", n_heads);
  TORCH_CHECK(n_heads % n_key_heads_ == 0, "n_heads ", n_heads, " is not a multiple of n_key_heads ",
              n_key_heads_);
  head_dim_ = options.head_dim().value_or(d_model / n_heads);

  const int64_t key_width = n_key_heads_ * head_dim_, value_width = n_heads * head_dim_;
  const LinearPart queries{key_width, WeightUse::query}, keys{key_width}, values{value_width};
  const auto map = [&](std::vector<LinearPart> parts) {
    return Linear(LinearOptions(d_model, std::move(parts)).bias(options.qkv_bias()));
  };
  const auto per_head = [&] { return Linear(LinearOptions(d_model, n_heads).bias(false)); };
  if (options.projection() == Projection::fused) {
    qkv = register_module("qkv", map({queries, keys, values}));
  } else {
    q = register_module("q", map({queries}));
    k = register_module("k", map({keys}));
    v = register_module("v", map({values}));
  }
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
  out = register_module(
      "out",
      Linear(linear_options(value_width, d_model, WeightUse::residual_output).bias(options.out_bias())));
}

/// As in flash-linear-attention: exp(A_log) is uniform in (0, 16), and softplus(dt_bias) log-uniform between
/// 0.001 and 0.1.
void DeltaNetImpl::make_decay() {
  constexpr double largest_rate = 16, shortest_step = 1e-3, longest_step = 0.1, least_step = 1e-4,
                   least_rate = 1e-3;
  const int64_t n_heads = options.n_heads();
  a_log = register_parameter("A_log",
                             torch::empty({n_heads}).uniform_(0, largest_rate).clamp_min(least_rate).log());
  const auto steps = torch::empty({n_heads})
                         .uniform_(std::log(shortest_step), std::log(longest_step))
                         .exp()
                         .clamp_min(least_step);
  dt_bias =
      register_parameter("dt_bias", steps + (-torch::expm1(-steps)).log());  // softplus of it is `steps`
}

torch::Tensor DeltaNetImpl::split(const torch::Tensor& x, int64_t n_heads) const {
  return x.unflatten(-1, {n_heads, head_dim_}).transpose(1, 2);
}

/// (B, T, C): queries, keys and values before the convolution.
torch::Tensor DeltaNetImpl::project(const torch::Tensor& x, const torch::Tensor& positions) {
  const auto placed = positions.defined() ? x + positions : x;
  if (!qkv) return torch::cat({q(placed), k(placed), v(x)}, -1);
  if (!positions.defined()) return qkv(x);
  return torch::cat(
      {qkv->forward_some(placed, {.first = 0, .count = 2}), qkv->forward_some(x, {.first = 2, .count = 1})},
      -1);
}

torch::Tensor DeltaNetImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  TORCH_CHECK(context.mask.is_causal() || context.state, "the delta rule is causal, and this mask is not");
  TORCH_CHECK(!context.maps, "the delta rule has no weights of tokens");
  TORCH_CHECK(!context.bias.defined(), "the delta rule has no scores to which a bias could be added");
  TORCH_CHECK(!context.memory.defined() && !context.remembered, "the delta rule has no cross-attention");
  auto* const state = dynamic_cast<RunningState*>(context.state);
  const auto real = real_tokens(context, x.size(1), x.device());
  const auto counts = state && context.range ? context.range->counts() : torch::Tensor();
  const auto projected = project(x, context.query_positions), strength = beta(x);
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
    DeltaRuleInput input{
        .q = for_every_head(l2_normalized(split(parts[0], n_key_heads_)) / std::sqrt(double(head_dim_))),
        .k = for_every_head(l2_normalized(split(parts[1], n_key_heads_))),
        .v = split(parts[2], n_heads),
        .beta = torch::sigmoid(full(strength)).transpose(1, 2)};
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
  mixed = mixed.flatten(2).to(x.scalar_type());
  return out(gate ? mixed * torch::silu(gate(x)) : mixed);
}

std::unique_ptr<LayerState> DeltaNetImpl::new_state(int64_t n_rows) const {
  std::vector<torch::Tensor> tensors{empty_state(out, {n_rows, options.n_heads(), head_dim_, head_dim_})};
  if (conv) tensors.push_back(empty_state(out, {n_rows, options.n_taps() - 1, conv->options.n_channels()}));
  return std::make_unique<RunningState>(std::move(tensors));
}

std::shared_ptr<torch::nn::Module> DeltaNetImpl::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<DeltaNetImpl>(options);
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
                .add("output_gate", options.output_gate());
}

}  // namespace zoo

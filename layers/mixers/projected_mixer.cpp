#include "layers/mixers/projected_mixer.h"

#include <vector>

#include <ATen/autocast_mode.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {

ProjectedMixerImpl::ProjectedMixerImpl(const AttentionOptions& options_)
    : options(options_), n_kv_heads_(options.n_kv_heads().value_or(options.n_heads())) {
  const int64_t d_model = options.d_model(), n_heads = options.n_heads();
  TORCH_CHECK(options.head_dim() || d_model % n_heads == 0, "d_model ", d_model,
              " is not a multiple of n_heads ", n_heads);
  TORCH_CHECK(n_heads % n_kv_heads_ == 0, "n_heads ", n_heads, " is not a multiple of n_kv_heads ",
              n_kv_heads_);
  TORCH_CHECK(!options.shaw_max_distance(), "only Attention has Shaw's vectors");
  head_dim_ = options.head_dim().value_or(d_model / n_heads);

  const LinearPart queries{n_heads * head_dim_, WeightUse::query}, keys{n_kv_heads_ * head_dim_};
  const auto map = [&](std::vector<LinearPart> parts) {
    return Linear(LinearOptions(d_model, std::move(parts)).bias(options.qkv_bias()));
  };
  if (options.projection() == Projection::fused) {
    qkv = register_module("qkv", map({queries, keys, keys}));
  } else {
    q = register_module("q", map({queries}));
    k = register_module("k", map({keys}));
    v = register_module("v", map({keys}));
  }
  out = register_module(
      "out",
      Linear(
          linear_options(n_heads * head_dim_, d_model, WeightUse::residual_output).bias(options.out_bias())));
  if (options.qk_norm()) {
    q_norm = register_module("q_norm", Norm(*options.qk_norm()));
    k_norm = register_module("k_norm", Norm(*options.qk_norm()));
  }
}

torch::Tensor ProjectedMixerImpl::split(const torch::Tensor& x, int64_t n_heads) const {
  return x.view({x.size(0), x.size(1), n_heads, head_dim_}).transpose(1, 2);
}

ProjectedMixerImpl::Heads ProjectedMixerImpl::heads_of(const torch::Tensor& x,
                                                       const AttentionContext& context) {
  TORCH_CHECK(!context.memory.defined() && !context.remembered, "this mixer has no cross-attention");
  TORCH_CHECK(!context.bias.defined(), "this mixer has no scores to which a bias could be added");
  const auto& positions = context.query_positions;
  const auto placed = positions.defined() ? x + positions : x;
  std::vector<torch::Tensor> parts;
  if (!qkv) {
    parts = {q(placed), k(placed), v(x)};
  } else if (!positions.defined()) {
    parts = qkv->forward_parts(x);
  } else {
    parts = {qkv->forward_some(placed, {.first = 0, .count = 1}),
             qkv->forward_some(placed, {.first = 1, .count = 1}),
             qkv->forward_some(x, {.first = 2, .count = 1})};
  }
  Heads heads{.q = split(parts[0], options.n_heads()),
              .k = split(parts[1], n_kv_heads_),
              .v = split(parts[2], n_kv_heads_)};
  if (q_norm) heads.q = q_norm(heads.q), heads.k = k_norm(heads.k);
  return heads;
}

torch::Tensor ProjectedMixerImpl::merged(const torch::Tensor& mixed) {
  return out(mixed.transpose(1, 2).reshape({mixed.size(0), mixed.size(2), options.n_heads() * head_dim_}));
}

torch::Tensor empty_state(const Linear& map, torch::IntArrayRef sizes) {
  const auto& weights = map->matrix().numbers();
  const auto type = weights.scalar_type() == torch::kFloat64 ? torch::kFloat64 : torch::kFloat32;
  return torch::zeros(sizes, torch::dtype(type).device(weights.device()));
}

FullPrecision::FullPrecision(torch::Device device)
    : device_(device.type()), was_enabled_(at::autocast::is_autocast_enabled(device_)) {
  if (was_enabled_) at::autocast::set_autocast_enabled(device_, false);
}

FullPrecision::~FullPrecision() {
  if (was_enabled_) at::autocast::set_autocast_enabled(device_, true);
}

torch::Tensor FullPrecision::operator()(const torch::Tensor& x) const {
  return x.to(at::promote_types(x.scalar_type(), torch::kFloat32));
}

torch::Tensor real_tokens(const AttentionContext& context, int64_t n_tokens, torch::Device device) {
  const bool by_row = context.range && context.range->differs_by_row();
  TORCH_CHECK(by_row || context.mask.is_causal_or_lengths(),
              "this mixer hides later tokens and padding, and has no weights that another mask could hide");
  const auto columns = torch::arange(n_tokens, torch::dtype(torch::kInt64).device(device));
  torch::Tensor real;
  if (context.range && context.range->counts().defined())
    real = columns.lt(context.range->counts().to(device).unsqueeze(1));
  // With a state, keys are columns of all tokens that were read; their padding is in the counts.
  if (const auto& ends = context.mask.ends(); ends.defined() && !context.state) {
    const auto seen = columns.lt(ends.to(device).unsqueeze(1));
    real = real.defined() ? real.logical_and(seen) : seen;
  }
  return real;
}

}  // namespace zoo

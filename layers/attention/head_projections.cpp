#include "layers/attention/head_projections.h"

#include <utility>
#include <vector>

#include <torch/types.h>

namespace zoo {

torch::Tensor with_positions(const torch::Tensor& x, const torch::Tensor& positions) {
  return positions.defined() ? x + positions : x;
}

HeadProjectionsImpl::HeadProjectionsImpl(const AttentionOptions& options_)
    : options(options_), n_kv_heads_(options.n_kv_heads().value_or(options.n_heads())) {
  const int64_t d_model = options.d_model(), n_heads = options.n_heads();
  TORCH_CHECK(options.head_dim() || d_model % n_heads == 0, "d_model ", d_model,
              " is not a multiple of n_heads ", n_heads);
  TORCH_CHECK(n_heads % n_kv_heads_ == 0, "n_heads ", n_heads, " is not a multiple of n_kv_heads ",
              n_kv_heads_);
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

torch::Tensor HeadProjectionsImpl::split_heads(const torch::Tensor& x, int64_t n_heads) const {
  return x.view({x.size(0), x.size(1), n_heads, head_dim_}).transpose(1, 2);
}

HeadProjectionsImpl::Heads HeadProjectionsImpl::project_heads(const torch::Tensor& x,
                                                              const torch::Tensor& positions) {
  const auto placed = with_positions(x, positions);
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
  Heads heads{.q = split_heads(parts[0], options.n_heads()),
              .k = split_heads(parts[1], n_kv_heads_),
              .v = split_heads(parts[2], n_kv_heads_)};
  if (q_norm) heads.q = q_norm(heads.q), heads.k = k_norm(heads.k);
  return heads;
}

torch::Tensor HeadProjectionsImpl::merged(const torch::Tensor& mixed) {
  return out(mixed.transpose(1, 2).reshape({mixed.size(0), mixed.size(2), options.n_heads() * head_dim_}));
}

}  // namespace zoo

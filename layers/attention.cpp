#include "layers/attention.h"

#include <cmath>

#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "layers/kernels/linear.h"
#include "layers/positions/position_bias.h"
#include "layers/scaled_dot_product.h"

namespace zoo {

AttentionImpl::AttentionImpl(const AttentionOptions& options_)
    : options(options_), n_kv_heads_(options.n_kv_heads().value_or(options.n_heads())) {
  const int64_t d_model = options.d_model(), n_heads = options.n_heads();
  TORCH_CHECK(options.head_dim() || d_model % n_heads == 0, "d_model ", d_model,
              " is not a multiple of n_heads ", n_heads);
  TORCH_CHECK(n_heads % n_kv_heads_ == 0, "n_heads ", n_heads, " is not a multiple of n_kv_heads ",
              n_kv_heads_);
  head_dim_ = options.head_dim().value_or(d_model / n_heads);

  const auto make = [](int64_t from, int64_t to, bool bias) {
    return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(bias));
  };
  const int64_t q_width = n_heads * head_dim_, kv_width = n_kv_heads_ * head_dim_;
  if (options.projection() == Projection::fused) {
    qkv = register_module("qkv", make(d_model, q_width + 2 * kv_width, options.qkv_bias()));
  } else {
    q = register_module("q", make(d_model, q_width, options.qkv_bias()));
    k = register_module("k", make(d_model, kv_width, options.qkv_bias()));
    v = register_module("v", make(d_model, kv_width, options.qkv_bias()));
  }
  out = register_module("out", make(q_width, d_model, options.out_bias()));
  if (options.qk_norm()) {
    q_norm = register_module("q_norm", Norm(*options.qk_norm()));
    k_norm = register_module("k_norm", Norm(*options.qk_norm()));
  }
  if (options.shaw_max_distance()) {
    const int64_t rows = 2 * *options.shaw_max_distance() + 1;
    relative_keys = register_parameter("relative_keys", torch::randn({rows, head_dim_}) * 0.02);
    relative_values = register_parameter("relative_values", torch::randn({rows, head_dim_}) * 0.02);
  }
}

torch::Tensor AttentionImpl::split_heads(const torch::Tensor& x, int64_t n_heads) const {
  return x.view({x.size(0), x.size(1), n_heads, head_dim_}).transpose(1, 2);
}

AttentionImpl::Heads AttentionImpl::project(const torch::Tensor& x, const AttentionContext& context) {
  const bool cross = context.memory.defined();
  const bool needs_keys = !(cross && context.cache && !context.cache->empty());
  const auto& source = cross ? context.memory : x;
  const int64_t q_width = options.n_heads() * head_dim_, kv_width = n_kv_heads_ * head_dim_;

  torch::Tensor queries, keys, values;
  if (qkv && !cross) {
    const auto parts = linear(qkv, x).split_with_sizes({q_width, kv_width, kv_width}, -1);
    queries = parts[0], keys = parts[1], values = parts[2];
  } else if (qkv) {
    const auto part = [&](const torch::Tensor& input, int64_t begin, int64_t width) {
      const auto bias = qkv->bias.defined() ? qkv->bias.narrow(0, begin, width) : torch::Tensor();
      return linear(input, qkv->weight.narrow(0, begin, width), bias);
    };
    queries = part(x, 0, q_width);
    if (needs_keys) {
      const auto parts = part(source, q_width, 2 * kv_width).chunk(2, -1);
      keys = parts[0], values = parts[1];
    }
  } else {
    queries = linear(q, x);
    if (needs_keys) keys = linear(k, source), values = linear(v, source);
  }

  Heads heads{.q = split_heads(queries, options.n_heads()), .k = {}, .v = {}};
  if (needs_keys) {
    heads.k = split_heads(keys, n_kv_heads_);
    heads.v = split_heads(values, n_kv_heads_);
  }
  if (q_norm) {
    heads.q = q_norm(heads.q);
    if (needs_keys) heads.k = k_norm(heads.k);
  }
  if (context.rotary && context.rotary->defined()) {
    heads.q = context.rotary->apply(heads.q);
    if (needs_keys) heads.k = context.rotary->apply(heads.k);
  }
  return heads;
}

// e_ij = q_i·(k_j + a^K_ij), z_i = Σ_j α_ij (v_j + a^V_ij), a clipped to n positions either way.
torch::Tensor AttentionImpl::with_relative_positions(const Heads& heads, const AttentionContext& context,
                                                     double dropout) {
  const int64_t n_queries = heads.q.size(2), n_keys = heads.k.size(2), reach = *options.shaw_max_distance();
  const PositionRange range{.first = n_keys - n_queries, .count = n_queries, .starts = {}};
  const auto rows = relative_positions(range, heads.q.device()).clamp(-reach, reach) + reach;  // (T, S)
  const double scale = options.scale().value_or(1.0 / std::sqrt(static_cast<double>(head_dim_)));
  const auto key_vectors = torch::embedding(relative_keys, rows).to(heads.q.dtype());      // (T, S, Dh)
  const auto value_vectors = torch::embedding(relative_values, rows).to(heads.q.dtype());  // (T, S, Dh)
  auto bias = torch::einsum("bhtd,tsd->bhts", {heads.q * scale, key_vectors});
  if (context.bias.defined()) bias = bias + context.bias;
  const auto [output, weights] =
      explicit_attention(heads.q, heads.k, heads.v, {context.mask, bias, options.scale(), dropout});
  if (context.maps) context.maps->push_back(weights);
  return output + torch::einsum("bhts,tsd->bhtd", {weights, value_vectors});
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  auto heads = project(x, context);
  if (context.cache) {
    if (heads.k.defined()) context.cache->append(heads.k, heads.v);
    heads.k = context.cache->keys();
    heads.v = context.cache->values();
  }
  const double dropout = is_training() ? options.dropout() : 0.0;
  const ScaledDotProductOptions call{context.mask, context.bias, options.scale(), dropout};

  torch::Tensor mixed;  // (B, H, T, Dh)
  if (options.shaw_max_distance() && !context.memory.defined()) {
    mixed = with_relative_positions(heads, context, dropout);
  } else if (context.maps) {
    const auto result = explicit_attention(heads.q, heads.k, heads.v, call);
    context.maps->push_back(result.weights);
    mixed = result.output;
  } else {
    mixed = fused_attention(heads.q, heads.k, heads.v, call);
  }
  return linear(out, mixed.transpose(1, 2).reshape({x.size(0), x.size(1), options.n_heads() * head_dim_}));
}

}  // namespace zoo

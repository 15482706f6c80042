#include "layers/attention.h"

#include <cmath>

#include <torch/types.h>

#include "layers/positions/position_bias.h"
#include "layers/scaled_dot_product.h"
#include "layers/weights/description.h"

namespace zoo {
namespace {

/// x + positions, or x if there are none.
torch::Tensor with_positions(const torch::Tensor& x, const torch::Tensor& positions) {
  return positions.defined() ? x + positions : x;
}

}  // namespace

AttentionImpl::AttentionImpl(const AttentionOptions& options_)
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
  if (options.shaw_max_distance()) {
    const int64_t rows = 2 * *options.shaw_max_distance() + 1;
    relative_keys = register_parameter("relative_keys", torch::randn({rows, head_dim_}) * 0.02);
    relative_values = register_parameter("relative_values", torch::randn({rows, head_dim_}) * 0.02);
  }
}

void AttentionImpl::visit_weights(const WeightVisitor& visit) const {
  for (const auto& vectors : {relative_keys, relative_values})
    if (vectors.defined()) visit({vectors, 0, vectors.size(0), WeightUse::distance_table});
}

std::shared_ptr<torch::nn::Module> AttentionImpl::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<AttentionImpl>(options);
}

void AttentionImpl::pretty_print(std::ostream& stream) const {
  stream << Description("Attention")
                .add("d_model", options.d_model())
                .add("n_heads", options.n_heads())
                .add("n_kv_heads", n_kv_heads_)
                .add("head_dim", head_dim_)
                .add("projection", options.projection())
                .add("scale", options.scale())
                .add("shaw_max_distance", options.shaw_max_distance())
                .add("dropout", options.dropout());
}

std::unique_ptr<LayerState> AttentionImpl::new_state(int64_t n_rows) const {
  return std::make_unique<KeyValueState>(n_rows);
}

torch::Tensor AttentionImpl::split_heads(const torch::Tensor& x, int64_t n_heads) const {
  return x.view({x.size(0), x.size(1), n_heads, head_dim_}).transpose(1, 2);
}

torch::Tensor AttentionImpl::project_queries(const torch::Tensor& x) {
  const auto queries =
      split_heads(qkv ? qkv->forward_some(x, {.first = 0, .count = 1}) : q(x), options.n_heads());
  return q_norm ? q_norm(queries) : queries;
}

KeysAndValues AttentionImpl::project_memory(const torch::Tensor& memory, const torch::Tensor& positions) {
  torch::Tensor keys, values;
  const auto source = with_positions(memory, positions);
  if (!qkv) {
    keys = k(source), values = v(memory);
  } else if (positions.defined()) {
    keys = qkv->forward_some(source, {.first = 1, .count = 1});
    values = qkv->forward_some(memory, {.first = 2, .count = 1});
  } else {
    const auto both = qkv->forward_some(memory, {.first = 1, .count = 2}).chunk(2, -1);
    keys = both[0], values = both[1];
  }
  keys = split_heads(keys, n_kv_heads_);
  return {.keys = k_norm ? k_norm(keys) : keys, .values = split_heads(values, n_kv_heads_)};
}

std::unique_ptr<MemoryState> AttentionImpl::remember(const torch::Tensor& memory,
                                                     const torch::Tensor& positions) {
  const auto made = project_memory(memory, positions);
  return std::make_unique<MemoryState>(
      KeysAndValues{.keys = made.keys.contiguous(), .values = made.values.contiguous()});
}

AttentionImpl::Heads AttentionImpl::self_heads(const torch::Tensor& x, const AttentionContext& context) {
  Heads heads;
  if (qkv && !context.query_positions.defined()) {
    const auto parts = qkv->forward_parts(x);
    heads = {.q = split_heads(parts[0], options.n_heads()),
             .k = split_heads(parts[1], n_kv_heads_),
             .v = split_heads(parts[2], n_kv_heads_)};
    if (q_norm) heads.q = q_norm(heads.q), heads.k = k_norm(heads.k);
  } else {
    heads.q = project_queries(with_positions(x, context.query_positions));
    const auto [keys, values] = project_memory(x, context.query_positions);
    heads.k = keys, heads.v = values;
  }
  if (context.rotary && context.rotary->defined()) {
    heads.q = context.rotary->apply(heads.q);
    heads.k = context.rotary->apply(heads.k);
  }
  if (context.state) {
    TORCH_CHECK(context.range, "a state needs the positions of the tokens");
    const auto all = dynamic_cast<KeyValueState&>(*context.state).extend(heads.k, heads.v, *context.range);
    heads.k = all.keys, heads.v = all.values;
  }
  return heads;
}

AttentionImpl::Heads AttentionImpl::cross_heads(const torch::Tensor& x, const AttentionContext& context) {
  const auto queries = project_queries(with_positions(x, context.query_positions));
  if (context.remembered)
    return {.q = queries, .k = context.remembered->keys(), .v = context.remembered->values()};
  const auto [keys, values] = project_memory(context.memory, context.memory_positions);
  return {.q = queries, .k = keys, .v = values};
}

// e_ij = q_i·(k_j + a^K_ij), z_i = Σ_j α_ij (v_j + a^V_ij); relative positions are clipped to -n … n.
torch::Tensor AttentionImpl::mix_with_relative_positions(const Heads& heads,
                                                         const AttentionContext& context) {
  const int64_t n_queries = heads.q.size(2), reach = *options.shaw_max_distance();
  const PositionRange whole(0, n_queries);
  const auto relative = relative_positions(context.range ? *context.range : whole, heads.q.device());
  const auto rows = relative.clamp(-reach, reach) + reach;  // (T, S) or (B, T, S)
  const bool by_row = rows.dim() == 3;
  const double scale = options.scale().value_or(1.0 / std::sqrt(static_cast<double>(head_dim_)));
  const auto key_vectors = torch::embedding(relative_keys, rows).to(heads.q.dtype());  // (…, T, S, Dh)
  const auto value_vectors = torch::embedding(relative_values, rows).to(heads.q.dtype());
  auto bias = torch::einsum(by_row ? "bhtd,btsd->bhts" : "bhtd,tsd->bhts", {heads.q * scale, key_vectors});
  if (context.bias.defined()) bias = bias + context.bias;
  const double dropout = is_training() ? options.dropout() : 0.0;
  const auto [output, weights] =
      explicit_attention(heads.q, heads.k, heads.v, {context.mask, bias, options.scale(), dropout});
  if (context.maps) context.maps->push_back(weights);
  return output + torch::einsum(by_row ? "bhts,btsd->bhtd" : "bhts,tsd->bhtd", {weights, value_vectors});
}

/// (B, H, T, Dh)
torch::Tensor AttentionImpl::mix(const Heads& heads, const AttentionContext& context) {
  const double dropout = is_training() ? options.dropout() : 0.0;
  const ScaledDotProductOptions call{context.mask, context.bias, options.scale(), dropout};
  if (!context.maps) return fused_attention(heads.q, heads.k, heads.v, call);
  const auto result = explicit_attention(heads.q, heads.k, heads.v, call);
  context.maps->push_back(result.weights);
  return result.output;
}

/// Rows with the same memory become further queries of one row, so the memory is not copied.
torch::Tensor AttentionImpl::mix_remembered(const Heads& heads, const AttentionContext& context) {
  const int64_t n_rows = heads.q.size(0), n_memories = heads.k.size(0), n_heads = heads.q.size(1),
                n_queries = heads.q.size(2);
  if (n_rows == n_memories) return mix(heads, context);
  TORCH_CHECK(n_rows % n_memories == 0 && !context.maps, n_memories, " memories cannot serve ", n_rows,
              " rows");
  const int64_t group = n_rows / n_memories;
  const auto folded = heads.q.view({n_memories, group, n_heads, n_queries, head_dim_})
                          .transpose(1, 2)
                          .reshape({n_memories, n_heads, group * n_queries, head_dim_});
  const auto mixed = mix({.q = folded, .k = heads.k, .v = heads.v}, context);
  return mixed.view({n_memories, n_heads, group, n_queries, head_dim_})
      .transpose(1, 2)
      .reshape({n_rows, n_heads, n_queries, head_dim_});
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  const bool cross = context.memory.defined() || context.remembered;
  const auto heads = cross ? cross_heads(x, context) : self_heads(x, context);
  const bool relative = options.shaw_max_distance() && !cross;
  const auto mixed = relative ? mix_with_relative_positions(heads, context)
                     : cross  ? mix_remembered(heads, context)
                              : mix(heads, context);
  return out(mixed.transpose(1, 2).reshape({x.size(0), x.size(1), options.n_heads() * head_dim_}));
}

}  // namespace zoo

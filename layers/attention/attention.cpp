#include "layers/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "base/random.h"
#include "layers/attention/pattern_attention.h"
#include "layers/attention/position_bias.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/attention/window_pattern.h"
#include "layers/kernels/few_queries.h"
#include "layers/weights/construction.h"

namespace zoo {

AttentionImpl::AttentionImpl(const AttentionOptions& options_) : HeadProjectionsImpl(options_) {
  if (options.global_projections()) {
    const auto* const window = dynamic_cast<const WindowPattern*>(options.pattern().get());
    TORCH_CHECK(
        window && !window->options().global_queries() && window->direction() == Direction::bidirectional &&
            n_kv_heads_ == options.n_heads(),
        "projections of global queries need a bidirectional window without global queries, and as many "
        "key heads as query heads");
    const int64_t width = options.n_heads() * head_dim_;
    const auto map = [&](const LinearPart& part, bool bias) {
      return Linear(LinearOptions(options.d_model(), {part}).bias(bias));
    };
    global_q = register_module("global_q", map({width, WeightUse::query}, options.qkv_bias()));
    global_k = register_module("global_k", map({width}, options.has_key_bias()));
    global_v = register_module("global_v", map({width}, options.qkv_bias()));
  }
  if (options.shaw_max_distance()) {
    const auto table = [&] {
      return drawn_tensor({2 * *options.shaw_max_distance() + 1, head_dim_},
                          [](torch::Tensor& vectors) { vectors.normal_().mul_(0.02); });
    };
    relative_keys = register_parameter("relative_keys", table());
    relative_values = register_parameter("relative_values", table());
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
  stream << described("Attention")
                .add("scale", options.scale())
                .add("softcap", options.softcap())
                .add("shaw_max_distance", options.shaw_max_distance())
                .add("pattern",
                     options.pattern() ? std::optional(options.pattern()->description()) : std::nullopt)
                .add("dropout", options.dropout());
}

std::unique_ptr<LayerState> AttentionImpl::new_state(int64_t n_rows) const {
  if (options.pattern()) return new_pattern_state(*options.pattern(), n_rows);
  return std::make_unique<KeyValueState>(n_rows);
}

double AttentionImpl::scale() const {
  return options.scale().value_or(1.0 / std::sqrt(static_cast<double>(head_dim_)));
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
  auto heads = project_heads(x, context.query_positions);
  if (context.rotary && context.rotary->defined()) {
    heads.q = context.rotary->apply(heads.q);
    heads.k = context.rotary->apply(heads.k);
  }
  return heads;
}

torch::Tensor AttentionImpl::cross_attention(const torch::Tensor& x, const AttentionContext& context) {
  const auto queries = project_queries(with_positions(x, context.query_positions));
  if (context.remembered) return mix_remembered(queries, context);
  const auto [keys, values] = project_memory(context.memory, context.memory_positions);
  return mix({.q = queries, .k = keys, .v = values}, context);
}

// e_ij = q_i·(k_j + a^K_ij), z_i = Σ_j α_ij (v_j + a^V_ij); relative positions are clipped to -n … n.
torch::Tensor AttentionImpl::mix_with_relative_positions(const Heads& heads,
                                                         const AttentionContext& context) {
  const int64_t n_queries = heads.q.size(2), reach = *options.shaw_max_distance();
  const PositionRange whole(0, n_queries);
  const auto relative = relative_positions(context.range ? *context.range : whole, heads.q.device());
  const auto rows = relative.clamp(-reach, reach) + reach;  // (T, S) or (B, T, S)
  const bool by_row = rows.dim() == 3;
  const auto key_vectors = torch::embedding(relative_keys, rows).to(heads.q.dtype());  // (…, T, S, Dh)
  const auto value_vectors = torch::embedding(relative_values, rows).to(heads.q.dtype());
  if (n_queries == 1 && !context.maps && has_few_queries_attention(heads.q, heads.k, heads.v)) {
    // The sums of a single query's keys and values are cheaper than products with their parts.
    const auto of_keys = [&](const torch::Tensor& vectors) {
      return vectors.reshape({-1, 1, heads.k.size(2), head_dim_});
    };
    return mix({.q = heads.q, .k = heads.k + of_keys(key_vectors), .v = heads.v + of_keys(value_vectors)},
               context);
  }
  auto bias = torch::einsum(by_row ? "bhtd,btsd->bhts" : "bhtd,tsd->bhts", {heads.q * scale(), key_vectors});
  if (context.bias.defined()) bias = bias + context.bias;
  const double dropout = is_training() ? options.dropout() : 0.0;
  const auto [output, weights] = explicit_attention(
      heads.q, heads.k, heads.v, {context.mask, bias, options.scale(), dropout, options.softcap()});
  if (context.maps) context.maps->push_back(weights);
  return output + torch::einsum(by_row ? "bhts,btsd->bhtd" : "bhts,tsd->bhtd", {weights, value_vectors});
}

ScaledDotProductOptions AttentionImpl::call_options(const AttentionContext& context) const {
  const double dropout = is_training() ? options.dropout() : 0.0;
  return {context.mask, context.bias, options.scale(), dropout, options.softcap()};
}

/// (B, H, T, Dh)
torch::Tensor AttentionImpl::mix(const Heads& heads, const AttentionContext& context) {
  const auto call = call_options(context);
  if (!context.maps) return fused_attention(heads.q, heads.k, heads.v, call);
  const auto result = explicit_attention(heads.q, heads.k, heads.v, call);
  context.maps->push_back(result.weights);
  return result.output;
}

/// (B, H, T, Dh): attention over the keys of these heads.
torch::Tensor AttentionImpl::mix_self(const Heads& heads, const AttentionContext& context) {
  return options.shaw_max_distance() ? mix_with_relative_positions(heads, context) : mix(heads, context);
}

/// The same over all keys that the state has, after it has read these.
torch::Tensor AttentionImpl::mix_with_state(const Heads& heads, const AttentionContext& context) {
  TORCH_CHECK(context.range, "a state needs the positions of the tokens");
  auto& state = dynamic_cast<KeyValueState&>(*context.state);
  if (!options.shaw_max_distance() && !context.maps)
    return fused_attention(heads.q, heads.k, heads.v, state, *context.range, call_options(context));
  const auto all = state.extend(heads.k, heads.v, *context.range);
  return mix_self({.q = heads.q, .k = all.keys, .v = all.values}, context);
}

/// Rows with the same memory become further queries of one row, so the memory is not copied.
torch::Tensor AttentionImpl::mix_remembered(const torch::Tensor& queries, const AttentionContext& context) {
  const auto& memories = *context.remembered;
  const int64_t n_rows = queries.size(0), n_memories = memories.n_memories(), n_heads = queries.size(1),
                n_queries = queries.size(2);
  if (context.maps) {
    TORCH_CHECK(n_rows == n_memories, "maps need a memory for each row");
    const auto& all = memories.together();
    return mix({.q = queries, .k = all.keys, .v = all.values}, context);
  }
  if (n_rows == n_memories) return fused_attention(queries, memories, call_options(context));
  TORCH_CHECK(n_rows % n_memories == 0, n_memories, " memories cannot serve ", n_rows, " rows");
  const int64_t group = n_rows / n_memories;
  const auto folded = queries.view({n_memories, group, n_heads, n_queries, head_dim_})
                          .transpose(1, 2)
                          .reshape({n_memories, n_heads, group * n_queries, head_dim_});
  return fused_attention(folded, memories, call_options(context))
      .view({n_memories, n_heads, group, n_queries, head_dim_})
      .transpose(1, 2)
      .reshape({n_rows, n_heads, n_queries, head_dim_});
}

torch::Tensor AttentionImpl::mix_pattern(const torch::Tensor& x, const Heads& heads,
                                         const AttentionContext& context) {
  TORCH_CHECK(!context.bias.defined(), "an attention with a pattern takes no bias");
  const auto mixed = pattern_attention(heads.q, heads.k, heads.v,
                                       {.pattern = *options.pattern(),
                                        .mask = context.mask,
                                        .scale = scale(),
                                        .dropout = is_training() ? options.dropout() : 0.0,
                                        .softcap = options.softcap(),
                                        .ids = context.ids,
                                        .state = context.state,
                                        .range = context.range,
                                        .maps = context.maps});
  return options.global_projections() ? with_global_queries(mixed, x, context) : mixed;
}

/// `mixed` (B, H, T, Dh) with the rows of global queries, which see all keys by projections of their own.
torch::Tensor AttentionImpl::with_global_queries(const torch::Tensor& mixed, const torch::Tensor& x,
                                                 const AttentionContext& context) {
  const auto& window = dynamic_cast<const WindowPattern&>(*options.pattern());
  auto positions = window.global_positions({.length = x.size(1), .ids = context.ids});
  positions.resize(static_cast<size_t>(x.size(0)), positions.front());
  size_t most = 0;
  std::vector<int64_t> rows, columns, places;  // of every global token: row, position, number within its row
  for (size_t b = 0; b < positions.size(); ++b) {
    most = std::max(most, positions[b].size());
    for (size_t i = 0; i < positions[b].size(); ++i) {
      rows.push_back(static_cast<int64_t>(b));
      columns.push_back(positions[b][i]);
      places.push_back(static_cast<int64_t>(i));
    }
  }
  const double dropout = is_training() ? options.dropout() : 0.0;
  if (most == 0) {
    if (dropout > 0) draw_seed();  // all parts of a batch draw the same seeds
    return mixed;
  }
  const auto on_device = [&](const std::vector<int64_t>& values) {
    return torch::tensor(values, torch::kInt64).to(x.device());
  };
  const auto row = on_device(rows), column = on_device(columns), place = on_device(places);
  const auto chosen =
      global_q(x.index({row, column})).view({-1, options.n_heads(), head_dim_});  // of all rows
  auto queries = chosen.new_zeros({x.size(0), static_cast<int64_t>(most), options.n_heads(), head_dim_});
  queries.index_put_({row, place}, chosen);
  queries = queries.transpose(1, 2);  // (B, H, most, Dh)
  const ScaledDotProductOptions call{.mask = Mask::lengths(context.mask.ends()),
                                     .scale = scale(),
                                     .dropout = dropout,
                                     .softcap = options.softcap()};
  const auto keys = split_heads(global_k(x), n_kv_heads_), values = split_heads(global_v(x), n_kv_heads_);
  // `to` (B, H, T, …) with the global rows of `from` (B, H, most, …).
  const auto replaced = [&](const torch::Tensor& to, const torch::Tensor& from) {
    auto result = to.transpose(1, 2).clone();
    result.index_put_({row, column}, from.transpose(1, 2).index({row, place}).to(to.scalar_type()));
    return result.transpose(1, 2);
  };
  if (!context.maps) return replaced(mixed, fused_attention(queries, keys, values, call));
  const auto global = explicit_attention(queries, keys, values, call);
  context.maps->back() = replaced(context.maps->back(), global.weights);
  return replaced(mixed, global.output);
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  if (context.memory.defined() || context.remembered) return merged(cross_attention(x, context));
  const auto heads = self_heads(x, context);
  if (options.pattern()) return merged(mix_pattern(x, heads, context));
  return merged(context.state ? mix_with_state(heads, context) : mix_self(heads, context));
}

}  // namespace zoo

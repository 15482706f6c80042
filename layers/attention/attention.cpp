#include "layers/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/pattern_attention.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/weights/construction.h"

namespace zoo {

AttentionImpl::AttentionImpl(const AttentionOptions& options_) : Cloneable(options_) {
  if (options.gate())
    gate = register_module(
        "gate",
        Linear(LinearOptions(options.d_model(), options.n_heads() * head_dim_).bias(options.qkv_bias())));
  if (options.sinks())
    sinks = register_parameter("sinks", torch::zeros({options.n_heads()}, parameter_options()));
}

Description AttentionImpl::description(std::string_view type) const {
  return described(type)
      .add("scale", options.scale())
      .add("softcap", options.softcap())
      .add("sinks", options.sinks() ? std::optional<std::string_view>("learned") : std::nullopt)
      .add("pattern", options.pattern() ? std::optional(options.pattern()->description()) : std::nullopt)
      .add("dropout", options.dropout());
}

void AttentionImpl::pretty_print(std::ostream& stream) const { stream << description("Attention"); }

std::unique_ptr<LayerState> AttentionImpl::new_state(int64_t n_rows) const {
  if (options.pattern()) return new_pattern_state(*options.pattern(), n_rows);
  return std::make_unique<KeyValueState>(n_rows);
}

double AttentionImpl::scale() const {
  return options.scale().value_or(1.0 / std::sqrt(static_cast<double>(head_dim_)));
}

torch::Tensor AttentionImpl::project_queries(const torch::Tensor& x) {
  const auto queries = qkv ? qkv->forward_some(x, {.first = 0, .count = 1}) : q(x);
  return normalised_heads(queries, options.n_heads(), q_norm);
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
  return {.keys = normalised_heads(keys, n_kv_heads_, k_norm),
          .values = split_heads(clipped(values), n_kv_heads_)};
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

ScaledDotProductOptions AttentionImpl::call_options(const AttentionContext& context) const {
  return {context.mask, context.bias, options.scale(), dropout_now(), options.softcap(), sinks};
}

torch::Tensor AttentionImpl::mix(const Heads& heads, const AttentionContext& context) {
  const auto call = call_options(context);
  if (!context.maps) return fused_attention(heads.q, heads.k, heads.v, call);
  const auto result = explicit_attention(heads.q, heads.k, heads.v, call);
  context.maps->push_back(result.weights);
  return result.output;
}

torch::Tensor AttentionImpl::mix_self(const Heads& heads, const AttentionContext& context) {
  return mix(heads, context);
}

torch::Tensor AttentionImpl::mix_with_state(const Heads& heads, const AttentionContext& context) {
  TORCH_CHECK(context.range, "a state needs the positions of the tokens");
  auto& state = context.state->key_values();
  if (!context.maps)
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

torch::Tensor AttentionImpl::mix_pattern(const torch::Tensor&, const Heads& heads,
                                         const AttentionContext& context) {
  TORCH_CHECK(!context.bias.defined(), "an attention with a pattern takes no bias");
  return pattern_attention(heads.q, heads.k, heads.v,
                           {.pattern = *options.pattern(),
                            .mask = context.mask,
                            .scale = scale(),
                            .dropout = dropout_now(),
                            .softcap = options.softcap(),
                            .sinks = sinks,
                            .ids = context.ids,
                            .state = context.state,
                            .range = context.range,
                            .maps = context.maps});
}

torch::Tensor AttentionImpl::finished(const torch::Tensor& x, const torch::Tensor& mixed,
                                      const AttentionContext& context) {
  if (!gate) return merged(mixed, context);
  return merged(mixed * torch::sigmoid(split_heads(gate(x), options.n_heads())), context);
}

torch::Tensor AttentionImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  if (context.memory.defined() || context.remembered)
    return finished(x, cross_attention(x, context), context);
  const auto heads = self_heads(x, context);
  if (options.pattern()) return finished(x, mix_pattern(x, heads, context), context);
  return finished(x, context.state ? mix_with_state(heads, context) : mix_self(heads, context), context);
}

void count_attention(CostAccount& account, std::string name, std::string kind,
                     const AttentionOptions& options, const AttentionShape& shape,
                     const AttentionProducts& products) {
  const HeadSizes sizes(options);
  const int64_t d_model = sizes.d_model, q_width = sizes.q_width(), kv_width = sizes.kv_width();

  const auto b = static_cast<double>(shape.batch_size), t = static_cast<double>(shape.n_queries),
             s = static_cast<double>(shape.n_keys);
  const auto q = static_cast<double>(d_model * q_width), kv = static_cast<double>(d_model * kv_width);
  const double n_query_maps = options.gate() ? 3 : 2;  // to queries, to the gate, and back
  const double projections =
      2 * b * (t * n_query_maps * q + static_cast<double>(products.n_key_maps) * s * 2 * kv);
  const auto& pattern = options.pattern();
  const double n_visible = pattern ? static_cast<double>(n_pairs(pattern->bands(shape.n_keys))) : t * s;
  const double scores =
      2 * static_cast<double>(products.n_pairs) * b * n_visible * static_cast<double>(q_width);
  // Attention that is capped or has sinks goes step by step: tanh and softmax keep their results.
  const double n_kept = (options.softcap() ? 2 : options.sinks() ? 1 : 0);
  const double kept_pairs = n_kept * b * n_visible * static_cast<double>(sizes.n_heads);
  const auto reach = pattern ? pattern->reach() : std::nullopt;
  const int64_t bytes_of_a_token = 2 * kv_width * kFloatBytes;
  account.add({.name = std::move(name),
               .kind = std::move(kind),
               .shape = account.is_detailed()
                            ? sizes.text() + (pattern ? ", " + pattern->description() : std::string())
                            : std::string(),
               .flops = projections + scores,
               .activation_bytes = bytes_of(b * t, (options.gate() ? 4 : 2) * q_width + d_model) +
                                   bytes_of(b * s, 2 * kv_width) + bytes_of(kept_pairs),
               .state_bytes_per_token = reach ? 0 : bytes_of_a_token,
               .state_bytes = reach ? (reach->first + reach->recent) * bytes_of_a_token : 0});
}

}  // namespace zoo

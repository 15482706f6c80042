#include "layers/decoding_layer.h"

#include <algorithm>
#include <cmath>
#include <typeinfo>
#include <utility>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "base/autocast.h"
#include "base/named_enum.h"
#include "kernels/gpu_decoding_attention.h"
#include "kernels/gpu_product.h"
#include "layers/attention/column_storage.h"

namespace zoo {
namespace {

/// The norm that the kernels compute; none: they do not know it.
ProductNorm norm_of(const NormImpl& norm) {
  const auto& formula = norm.options.formula();
  if (formula == norm_formula(NormKind::layer_norm)) return ProductNorm::mean;
  if (formula == norm_formula(NormKind::rms_norm)) return ProductNorm::zero;
  return ProductNorm::none;
}

/// The non-linearity that the kernels compute for a network, or for its gate. Nothing: they do not know it.
std::optional<ProductAct> act_of(const ActivationFunction& activation) {
  constexpr std::pair<Activation, ProductAct> known[] = {{Activation::relu, ProductAct::relu},
                                                         {Activation::reglu, ProductAct::relu},
                                                         {Activation::gelu, ProductAct::gelu_exact},
                                                         {Activation::geglu, ProductAct::gelu_exact},
                                                         {Activation::gelu_tanh, ProductAct::gelu_by_tanh},
                                                         {Activation::geglu_tanh, ProductAct::gelu_by_tanh},
                                                         {Activation::silu, ProductAct::silu},
                                                         {Activation::swiglu, ProductAct::silu},
                                                         {Activation::quick_gelu, ProductAct::quick_gelu}};
  const auto* const found =
      std::ranges::find_if(known, [&](const auto& one) { return name_of(one.first) == activation.name(); });
  return found == std::end(known) ? std::nullopt : std::optional(found->second);
}

StoredMatrix stored(const Linear& map) {
  return {map->matrix().numbers(), map->matrix().scales(), map->bias};
}

std::vector<StoredMatrix> stored(const std::vector<Linear>& maps) {
  std::vector<StoredMatrix> result;
  for (const auto& map : maps) result.push_back(stored(map));
  return result;
}

/// Whether the kernels can read a map.
bool suits(const Linear& map, torch::ScalarType type) {
  return !map->has_adapters() && has_gpu_product(stored(map), type);
}

/// A layer that the kernels may serve, seen as its parts.
struct Parts {
  AttentionImpl& attention;
  FeedForwardImpl& network;
  NormImpl &first_norm, &second_norm;
  torch::ScalarType type;  // of the products

  /// The maps whose outputs stand side by side: one stacked map, or several.
  std::vector<Linear> heads() const {
    return attention.qkv ? std::vector{attention.qkv} : std::vector{attention.q, attention.k, attention.v};
  }
  std::vector<Linear> inner() const {
    if (network.gate_up) return {network.gate_up};
    return network.gate ? std::vector{network.gate, network.up} : std::vector{network.up};
  }
  ProductGate gate() const {
    return network.options.activation()->is_gated() ? ProductGate::first_is_gate : ProductGate::none;
  }
};

bool is_plain_call(const TransformerLayerImpl& layer, const torch::Tensor& x, const LayerContext& context) {
  const auto& self = context.self;
  return !x.is_cpu() && x.size(1) == 1 && !layer.is_training() && !torch::GradMode::is_enabled() &&
         context.sub_layers.empty() && self.state && self.range && self.mask.is_causal() &&
         !self.mask.may_hide_all() && !self.memory.defined() && !self.remembered && !self.bias.defined() &&
         !self.query_positions.defined() && !self.range->counts().defined() && !self.maps && !self.heads;
}

bool is_plain_layer(const TransformerLayerImpl& layer) {
  const auto& residual = layer.residual->options;
  const auto& mixer = *layer.self_attention;
  return layer.feed_forward && !layer.cross_attention && typeid(mixer) == typeid(AttentionImpl) &&
         residual.placement() == NormPlacement::pre && residual.first_norm() && residual.scale() == 1 &&
         !residual.layer_scale();
}

bool is_plain_attention(const AttentionImpl& attention) {
  const auto& options = attention.options;
  const bool has_plain_norms = !attention.q_norm || (options.qk_norm_width() == QkNormWidth::head &&
                                                     norm_of(*attention.q_norm) == ProductNorm::zero);
  return !options.pattern() && !options.gate() && !options.qkv_clip() && has_plain_norms;
}

/// Nothing for a layer that the kernels do not serve.
std::optional<Parts> parts_of(TransformerLayerImpl& layer, const torch::Tensor& x) {
  if (!is_plain_layer(layer)) return std::nullopt;
  Parts parts{.attention = dynamic_cast<AttentionImpl&>(*layer.self_attention),
              .network = *layer.feed_forward,
              .first_norm = *layer.residual->norms_in[0],
              .second_norm = *layer.residual->norms_in[1],
              .type = autocast_type(x.device().type()).value_or(torch::kFloat)};
  if (!is_plain_attention(parts.attention) || !act_of(*parts.network.options.activation()) ||
      norm_of(parts.first_norm) == ProductNorm::none)
    return std::nullopt;
  auto maps = parts.heads();
  for (const auto& map : parts.inner()) maps.push_back(map);
  maps.push_back(parts.attention.out);
  maps.push_back(parts.network.down);
  if (!std::ranges::all_of(maps, [&](const Linear& map) { return suits(map, parts.type); }))
    return std::nullopt;
  return parts;
}

ProductPlan with_norm(ProductPlan plan, const NormImpl& norm) {
  plan.norm = norm_of(norm);
  plan.gain = norm.weight;
  plan.norm_bias = norm.bias;
  plan.gain_offset = norm.options.unit_offset() ? 1 : 0;
  plan.eps = norm.options.eps();
  return plan;
}

DecodingAttentionPlan attention_plan(const Parts& parts, const AttentionContext& context,
                                     ColumnStorage& storage) {
  const auto& attention = parts.attention;
  const auto& range = *context.range;
  const auto cache = storage.room_for(range);
  DecodingAttentionPlan plan{
      .n_heads = attention.options.n_heads(),
      .n_kv_heads = attention.n_kv_heads(),
      .keys = cache.keys,
      .values = cache.values,
      .positions = range.offsets(),
      .position = range.first(),
      .scale = attention.options.scale().value_or(1 / std::sqrt(static_cast<double>(attention.head_dim()))),
      .softcap = attention.options.softcap(),
      .sinks = attention.sinks};
  if (context.rotary && context.rotary->defined()) plan.angles = *context.rotary;
  if (attention.q_norm) {
    plan.query_gain = attention.q_norm->weight;
    plan.key_gain = attention.k_norm->weight;
    plan.gain_offset = attention.q_norm->options.unit_offset() ? 1 : 0;
    plan.norm_eps = attention.q_norm->options.eps();
  }
  return plan;
}

/// All products by our kernel. Nothing where it does not serve.
std::optional<torch::Tensor> few_rows(const Parts& parts, const torch::Tensor& x,
                                      const DecodingAttentionPlan& plan) {
  const auto type = parts.type;
  const auto heads =
      gpu_product(x, with_norm({.matrices = stored(parts.heads()), .type = type}, parts.first_norm));
  if (!heads) return std::nullopt;
  const auto mixed = gpu_decoding_attention(*heads, plan);
  const auto sum =
      gpu_product(mixed, {.matrices = {stored(parts.attention.out)}, .type = type, .residual = x});
  const auto inner = gpu_product(*sum, with_norm({.matrices = stored(parts.inner()),
                                                  .type = type,
                                                  .act = *act_of(*parts.network.options.activation()),
                                                  .gate = parts.gate()},
                                                 parts.second_norm));
  return gpu_product(*inner, {.matrices = {stored(parts.network.down)}, .type = type, .residual = *sum});
}

/// The products of many rows are LibTorch's.
torch::Tensor many_rows(const Parts& parts, const torch::Tensor& x, const DecodingAttentionPlan& plan) {
  auto& [attention, network, first_norm, second_norm, type] = parts;
  const auto h = first_norm.for_products(x);
  const auto heads =
      attention.qkv ? attention.qkv(h) : torch::cat({attention.q(h), attention.k(h), attention.v(h)}, -1);
  const auto sum = x + attention.out(gpu_decoding_attention(heads.to(type), plan));
  return sum + network.forward(second_norm.for_products(sum));
}

}  // namespace

std::optional<torch::Tensor> decoded_layer(TransformerLayerImpl& layer, ResidualSum& stream,
                                           const LayerContext& context) {
  const auto& like = stream.like();
  if (!is_plain_call(layer, like, context)) return std::nullopt;
  auto* const state = dynamic_cast<KeyValueState*>(context.self.state);
  auto* const storage = state ? state->slots() : nullptr;
  const auto parts = parts_of(layer, like);
  if (!storage || !parts) return std::nullopt;
  const auto type = parts->type;
  const auto plan = attention_plan(*parts, context.self, *storage);
  if (plan.keys.scalar_type() != type || !has_gpu_decoding_attention(plan)) return std::nullopt;
  const auto x = stream.value();
  return x.size(0) <= kMostProductRows ? few_rows(*parts, x, plan) : many_rows(*parts, x, plan);
}

}  // namespace zoo

#include "layers/attention/kinds/shaw_attention.h"

#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/few_queries.h"
#include "layers/attention/position_bias.h"
#include "layers/attention/scaled_dot_product.h"
#include "layers/weights/construction.h"

namespace zoo {

ShawAttentionImpl::ShawAttentionImpl(const AttentionOptions& options_, int64_t max_distance)
    : Cloneable(options_), max_distance_(max_distance) {
  TORCH_CHECK(max_distance >= 1 && !options.pattern(), "Shaw's vectors need a distance, and all keys");
  const auto table = [&] {
    return drawn_tensor({2 * max_distance + 1, head_dim_},
                        [](torch::Tensor& vectors) { vectors.normal_().mul_(0.02); });
  };
  relative_keys = register_parameter("relative_keys", table());
  relative_values = register_parameter("relative_values", table());
}

void ShawAttentionImpl::visit_weights(const WeightVisitor& visit) const {
  for (const auto& vectors : {relative_keys, relative_values})
    visit({vectors, 0, vectors.size(0), WeightUse::distance_table});
}

void ShawAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << description("ShawAttention").add("max_distance", max_distance_);
}

// e_ij = q_i·(k_j + a^K_ij), z_i = Σ_j α_ij (v_j + a^V_ij); relative positions are clipped to -n … n.
torch::Tensor ShawAttentionImpl::mix_self(const Heads& heads, const AttentionContext& context) {
  const int64_t n_queries = heads.q.size(2), reach = max_distance_;
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
  const auto [output, weights] =
      explicit_attention(heads.q, heads.k, heads.v,
                         {context.mask, bias, options.scale(), dropout_now(), options.softcap(), sinks});
  if (context.maps) context.maps->push_back(weights);
  return output + torch::einsum(by_row ? "bhts,btsd->bhtd" : "bhts,tsd->bhtd", {weights, value_vectors});
}

torch::Tensor ShawAttentionImpl::mix_with_state(const Heads& heads, const AttentionContext& context) {
  TORCH_CHECK(context.range, "a state needs the positions of the tokens");
  const auto all = context.state->key_values().extend(heads.k, heads.v, *context.range);
  return mix_self({.q = heads.q, .k = all.keys, .v = all.values}, context);
}

void count_shaw_attention(CostAccount& account, std::string name, const AttentionOptions& options,
                          const AttentionShape& shape) {
  count_attention(account, std::move(name), "self-attention", options, shape, {.n_pairs = 4});
}

}  // namespace zoo

#include "layers/attention/kinds/longformer_attention.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <torch/types.h>
#include <torch/utils.h>

#include "base/random.h"
#include "layers/attention/scaled_dot_product.h"

namespace zoo {
namespace {

AttentionOptions with_pattern(AttentionOptions options, std::shared_ptr<const AttentionPattern> pattern) {
  return options.pattern(std::move(pattern));
}

}  // namespace

LongformerAttentionImpl::LongformerAttentionImpl(const AttentionOptions& options_,
                                                 std::shared_ptr<const WindowPattern> window)
    : Cloneable(with_pattern(options_, window)), window_(std::move(window)) {
  TORCH_CHECK(!window_->options().global_queries() && window_->direction() == Direction::bidirectional &&
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

void LongformerAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << description("LongformerAttention");
}

/// The window's attention with other rows for the global queries.
torch::Tensor LongformerAttentionImpl::mix_pattern(const torch::Tensor& x, const Heads& heads,
                                                   const AttentionContext& context) {
  const auto mixed = AttentionImpl::mix_pattern(x, heads, context);
  auto positions = window_->global_positions({.length = x.size(1), .ids = context.ids});
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
  const double dropout = dropout_now();
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
                                     .softcap = options.softcap(),
                                     .sinks = sinks};
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

void count_longformer_attention(CostAccount& account, std::string name, const AttentionOptions& options,
                                const AttentionShape& shape) {
  count_attention(account, std::move(name), "self-attention", options, shape, {.n_key_maps = 2});
}

}  // namespace zoo

#include "layers/attention/scaled_dot_product.h"

#include <cmath>
#include <limits>

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/types.h>

#include "base/autocast.h"
#include "kernels/cpu_attention.h"
#include "kernels/dropout.h"
#include "kernels/few_queries.h"
#include "kernels/flash_attention.h"
#include "kernels/soft_cap.h"

namespace zoo {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

/// The type in which attention is computed: autocast changes that of q.
torch::ScalarType type_of_scores(const torch::Tensor& q) {
  return autocast_type(q.device().type()).value_or(q.scalar_type());
}

/// The only query of each row, and the H/K heads that share keys as so many queries of K heads: no kernel has
/// to repeat the keys. (B, H, 1, Dh) → (B, K, H/K, Dh)
torch::Tensor as_queries_of_shared_heads(const torch::Tensor& q, int64_t n_kv_heads) {
  return q.view({q.size(0), n_kv_heads, q.size(1) / n_kv_heads, q.size(3)});
}

// Mask and bias as one tensor, as the fused kernels take it: bool (true = visible) or additive.
torch::Tensor combined_mask(const torch::Tensor& visible, const torch::Tensor& bias,
                            torch::ScalarType dtype) {
  if (!bias.defined()) return visible;
  const auto additive = bias.to(dtype);
  return visible.defined()
             ? torch::where(visible, additive, torch::full({}, kMinusInfinity, additive.options()))
             : additive;
}

/// Every key, or the keys up to each query's own position. The last query is aligned with the last key.
Bands all_bands(int64_t n_queries, int64_t n_keys, bool is_causal) {
  Band band = Band::all({.count = n_queries}, {.count = n_keys});
  if (is_causal) band.high = n_keys - n_queries + 1;
  return {band};
}

double scale_of(const torch::Tensor& q, const ScaledDotProductOptions& options) {
  return options.scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(-1))));
}

FewQueriesOptions few_queries_options(const torch::Tensor& q, int64_t n_keys,
                                      const ScaledDotProductOptions& options) {
  return {.visible = options.mask.materialize(q.size(2), n_keys, q.device()),
          .bias = options.bias.defined() ? options.bias.to(torch::kFloat) : options.bias,
          .scale = scale_of(q, options),
          .softcap = options.softcap};
}

/// Zeros, not NaN, where nothing is visible. The weights have the type of the scores. Autocast for GPUs would
/// make them float32, and then has no gradient.
torch::Tensor softmax_of(const torch::Tensor& scores) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  return torch::_safe_softmax(scores, -1);
}

/// The weights of keys beside a further score of each head. scores: (B, H, T, S), sinks: (H).
torch::Tensor softmax_with_sinks(const torch::Tensor& scores, const torch::Tensor& sinks) {
  const auto sizes = scores.sizes();
  const auto column =
      sinks.to(scores.scalar_type()).view({1, -1, 1, 1}).expand({sizes[0], sizes[1], sizes[2], 1});
  return softmax_of(torch::cat({scores, column}, -1)).narrow(-1, 0, sizes[3]);
}

}  // namespace

torch::Tensor fused_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              const ScaledDotProductOptions& options) {
  if (options.sinks.defined()) return explicit_attention(q, k, v, options).output;
  if (options.dropout == 0 && has_few_queries_attention(q, k, v))
    return few_queries_attention(q, k, v, few_queries_options(q, k.size(2), options));
  // The fused CPU kernel has no dropout: LibTorch, too, would go step by step, with a slower dropout. No
  // fused kernel takes a scale that is not positive: LibTorch takes its square root. None caps scores.
  const double scale = scale_of(q, options);
  if ((options.dropout > 0 && q.is_cpu()) || scale <= 0 || options.softcap)
    return explicit_attention(q, k, v, options).output;
  const int64_t n_queries = q.size(2), n_keys = k.size(2);
  const bool grouped = q.size(1) != k.size(1);
  const bool needs_no_tensor = options.mask.is_causal_or_lengths() && !options.bias.defined();
  if (needs_no_tensor && has_cpu_attention(q, k, v))
    return cpu_attention(
        q, k, v, {all_bands(n_queries, n_keys, options.mask.is_causal()), options.mask.ends()}, scale);
  if (needs_no_tensor && options.mask.ends().defined() && !options.mask.is_causal() &&
      has_flash_attention(q, k, v))
    return flash_attention(q, k, v,
                           {.lengths = options.mask.ends(), .scale = scale, .dropout = options.dropout});
  // The kernels' causal flag aligns the first query with the first key, which is right only for as many keys
  // as queries. On a GPU it is enough for rows with lengths, too: padding at the end hides nothing from the
  // tokens before it, and what padding sees does not matter. On the CPU a mask costs less than its attention.
  const bool hides_only_later_keys = q.is_cpu()
                                         ? options.mask.is_only_causal()
                                         : options.mask.is_causal_or_lengths() && options.mask.is_causal();
  const bool causal_flag =
      hides_only_later_keys && n_queries == n_keys && n_queries > 1 && !options.bias.defined();
  if (!q.is_cpu() && n_queries == 1 && options.dropout == 0 && !options.bias.defined() &&
      !options.mask.may_hide_all()) {
    const auto mask = options.mask.additive(1, n_keys, q.device(), type_of_scores(q));
    const auto queries = grouped ? as_queries_of_shared_heads(q, k.size(1)) : q;
    return at::scaled_dot_product_attention(queries, k, v,
                                            mask.defined() ? std::make_optional(mask) : std::nullopt, 0,
                                            /*is_causal=*/false, scale)
        .reshape({q.size(0), q.size(1), 1, v.size(3)});
  }
  const auto visible =
      causal_flag ? torch::Tensor() : options.mask.materialize(n_queries, n_keys, q.device());
  const auto mask = causal_flag ? torch::Tensor() : combined_mask(visible, options.bias, q.scalar_type());
  const auto out =
      at::scaled_dot_product_attention(q, k, v, mask.defined() ? std::make_optional(mask) : std::nullopt,
                                       options.dropout, causal_flag, options.scale, grouped);
  // LibTorch's kernels for processors give zeros where nothing is visible; not every kernel for GPUs does.
  const bool needs_zeros = visible.defined() && !q.is_cpu() && options.mask.may_hide_all();
  return needs_zeros ? torch::where(visible.any(-1, /*keepdim=*/true), out, torch::zeros({}, out.options()))
                     : out;
}

torch::Tensor fused_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                              KeyValueState& state, const PositionRange& range,
                              const ScaledDotProductOptions& options) {
  if (options.dropout == 0 && are_few_queries(q) && !options.sinks.defined()) {
    state.write({.keys = k, .values = v}, range);
    if (const auto blocks = state.blocks(range.n_keys()))
      return few_queries_attention(q, *blocks, few_queries_options(q, range.n_keys(), options));
    const auto all = state.columns(range.n_keys());
    return fused_attention(q, all.keys, all.values, options);
  }
  const auto all = state.extend(k, v, range);
  return fused_attention(q, all.keys, all.values, options);
}

torch::Tensor fused_attention(const torch::Tensor& q, const MemoryState& state,
                              const ScaledDotProductOptions& options) {
  if (options.dropout == 0 && are_few_queries(q)) {
    if (const auto blocks = state.blocks())
      return few_queries_attention(q, *blocks, few_queries_options(q, state.n_columns(), options));
  }
  const auto& all = state.together();
  return fused_attention(q, all.keys, all.values, options);
}

AttentionResult explicit_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                   const ScaledDotProductOptions& options) {
  const int64_t group = q.size(1) / k.size(1);
  const auto keys = group == 1 ? k : k.repeat_interleave(group, 1);    // (B, H, S, Dh)
  const auto values = group == 1 ? v : v.repeat_interleave(group, 1);  // (B, H, S, Dv)
  const double scale = scale_of(q, options);

  auto scores = torch::matmul(q * scale, keys.transpose(-2, -1));  // (B, H, T, S)
  if (options.bias.defined()) scores = scores + options.bias;
  scores = soft_capped(scores, options.softcap);
  const auto visible = options.mask.materialize(q.size(2), k.size(2), q.device());
  if (visible.defined()) scores = scores.masked_fill(visible.logical_not(), kMinusInfinity);
  auto weights = options.sinks.defined() ? softmax_with_sinks(scores, options.sinks) : softmax_of(scores);
  weights = dropout(weights, options.dropout);
  // A float32 bias makes the weights float32.
  return {torch::matmul(weights.to(values.scalar_type()), values), weights};
}

}  // namespace zoo

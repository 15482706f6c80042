#include "layers/feature_attention.h"

#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "layers/running_sums.h"

namespace zoo {
namespace {

torch::Tensor ones_for(const torch::Tensor& v) {
  return torch::ones({v.size(0), v.size(1), v.size(2), 1}, v.options());
}

/// q (B, H, T, M) times the matrix (B, K, M, N) of the key head that serves each head.
torch::Tensor product(const torch::Tensor& q, const torch::Tensor& matrix) {
  const int64_t n_key_heads = matrix.size(1);
  const auto grouped = q.reshape({q.size(0), n_key_heads, -1, q.size(-1)});  // (B, K, G·T, M)
  return torch::matmul(grouped, matrix).view({q.size(0), q.size(1), q.size(2), matrix.size(-1)});
}

/// The first columns of `sums` over the last one.
torch::Tensor fraction(const torch::Tensor& sums, double eps) {
  const int64_t width = sums.size(-1) - 1;
  return sums.narrow(-1, 0, width) / (sums.narrow(-1, width, 1) + eps);
}

}  // namespace

Features without_padding(Features features, const torch::Tensor& real) {
  if (!real.defined()) return features;
  const auto padding = real.logical_not().unsqueeze(1).unsqueeze(-1);  // (B, 1, T, 1)
  for (auto* const x : {&features.k, &features.v, &features.k_above})
    if (x->defined()) *x = x->masked_fill(padding, 0);
  return features;
}

torch::Tensor attend_to_all(const Features& f) {
  const auto k_above = f.k_above.defined() ? f.k_above : f.k;
  const auto q_above = f.q_above.defined() ? f.q_above : f.q;
  const auto above = product(q_above, torch::matmul(k_above.transpose(-1, -2), f.v));
  const auto below = product(f.q, f.k.sum(2).unsqueeze(-1));
  return above / (below + f.eps);
}

AttendedPast attend_to_past(const Features& f, const torch::Tensor& before) {
  if (!f.q_above.defined()) {
    const auto both = running_sums({.q = f.q,
                                    .k = f.k,
                                    .v = torch::cat({f.v, ones_for(f.v)}, -1),
                                    .log_decay = f.log_decay,
                                    .before = before});
    return {.output = fraction(both.output, f.eps), .sums = both.sum};
  }
  const int64_t width = f.v.size(-1);
  const auto part = [&](int64_t first, int64_t count) {
    return before.defined() ? before.narrow(-1, first, count) : torch::Tensor();
  };
  const auto above = running_sums(
      {.q = f.q_above, .k = f.k_above, .v = f.v, .log_decay = f.log_decay, .before = part(0, width)});
  const auto below = running_sums(
      {.q = f.q, .k = f.k, .v = ones_for(f.v), .log_decay = f.log_decay, .before = part(width, 1)});
  return {.output = above.output / (below.output + f.eps), .sums = torch::cat({above.sum, below.sum}, -1)};
}

torch::Tensor weights_of(const Features& f, bool causal) {
  const auto products = [&](const torch::Tensor& q, const torch::Tensor& k) {
    auto scores = product(q, k.transpose(-1, -2));  // (B, H, T, T)
    if (f.log_decay.defined()) {
      const auto decay = f.log_decay.cumsum(-1);
      const auto between = (decay.unsqueeze(-1) - decay.unsqueeze(-2)).tril().exp();  // (B, K, T, T)
      scores = scores * between.repeat_interleave(q.size(1) / k.size(1), 1);
    }
    return causal ? scores.tril() : scores;
  };
  const auto below = products(f.q, f.k);
  const auto above = f.q_above.defined() ? products(f.q_above, f.k_above) : below;
  return above / (below.sum(-1, /*keepdim=*/true) + f.eps);
}

torch::Tensor attend(Features features, const torch::Tensor& real, const AttentionContext& context) {
  const bool causal = context.mask.is_causal() || context.state;
  const auto f = without_padding(std::move(features), real);
  if (context.maps) {
    TORCH_CHECK(!context.state, "weights are made without a state");
    context.maps->push_back(weights_of(f, causal));
  }
  if (!causal) return attend_to_all(f);
  auto* const state = dynamic_cast<RunningState*>(context.state);
  const auto past = attend_to_past(f, state ? state->tensor(0) : torch::Tensor());
  if (state) state->set(0, past.sums);
  return past.output;
}

FeatureCost feature_cost(const HeadSizes& sizes, int64_t m, Direction direction, Normalisation below,
                         int64_t n_tokens) {
  const int64_t n = sizes.head_dim + 1;  // values, and the sum below the fraction line
  FeatureCost cost;
  const auto of_features = static_cast<double>((sizes.n_heads + sizes.n_kv_heads) * m);
  cost.kept = of_features + static_cast<double>((sizes.n_heads + sizes.n_kv_heads) * n);
  if (direction == Direction::bidirectional) {
    // In place of a product with ones, keys are added up.
    cost.products = static_cast<double>(n_tokens) * static_cast<double>(sizes.n_heads * m * n) +
                    static_cast<double>(n_tokens) * static_cast<double>(sizes.n_kv_heads * m * (n - 1));
    return cost;
  }
  const Chunks chunks(n_tokens);
  cost.products = below == Normalisation::sum_of_its_own ? running_sums_products(sizes, n_tokens, m, n - 1) +
                                                               running_sums_products(sizes, n_tokens, m, 1)
                                                         : running_sums_products(sizes, n_tokens, m, n);
  cost.kept += static_cast<double>(sizes.n_heads * chunks.length) +
               static_cast<double>(sizes.n_kv_heads * m * n) / static_cast<double>(chunks.length);
  return cost;
}

}  // namespace zoo

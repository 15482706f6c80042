#include "models/mixers/running_costs.h"

namespace zoo {
namespace {

/// Multiply-adds of running_sums() for one row with features of width `m` and values of width `n`.
double running_sums_products(const HeadSizes& sizes, int64_t n_tokens, int64_t m, int64_t n) {
  if (n_tokens == 1) return static_cast<double>(sizes.n_heads * m * n);
  const Chunks chunks(n_tokens);
  const int64_t per_query = chunks.length * (m + n) + m * n, per_key = m * n;
  return chunks.tokens() * static_cast<double>(sizes.n_heads * per_query + sizes.n_kv_heads * per_key);
}

}  // namespace

FeatureCost feature_cost(const HeadSizes& sizes, int64_t m, const MixerPlace& place, Normalisation below,
                         int64_t n_tokens) {
  const int64_t n = sizes.head_dim + 1;  // values, and the sum below the fraction line
  FeatureCost cost;
  const auto of_features = static_cast<double>((sizes.n_heads + sizes.n_kv_heads) * m);
  cost.kept = of_features + static_cast<double>((sizes.n_heads + sizes.n_kv_heads) * n);
  if (!place.is_causal()) {
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

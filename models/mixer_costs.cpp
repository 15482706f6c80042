#include "models/mixer_costs.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "layers/mixers/running_sums.h"

namespace zoo {
namespace {

/// The chunks in which T tokens of a row are computed (layers/mixers/running_sums.h).
struct Chunks {
  explicit Chunks(int64_t n_tokens)
      : length(std::clamp<int64_t>(n_tokens, 1, kChunkLength)), count((n_tokens + length - 1) / length) {}

  int64_t length, count;

  double tokens() const { return static_cast<double>(length * count); }
};

/// Multiply-adds of running_sums() for one row with features of width `m` and values of width `n`.
double running_sums_products(const HeadSizes& sizes, int64_t n_tokens, int64_t m, int64_t n) {
  if (n_tokens == 1) return static_cast<double>(sizes.n_heads * m * n);
  const Chunks chunks(n_tokens);
  const int64_t per_query = chunks.length * (m + n) + m * n, per_key = m * n;
  return chunks.tokens() * static_cast<double>(sizes.n_heads * per_query + sizes.n_kv_heads * per_key);
}

/// Multiply-adds of the sums over tokens for one row, and the float32 numbers that they keep for the backward
/// pass for each token.
struct FeatureCost {
  double products = 0;
  double kept = 0;
};

FeatureCost feature_cost(const HeadSizes& sizes, int64_t m, const MixerUse& use, int64_t n_tokens) {
  const int64_t n = sizes.head_dim + 1;  // values, and the sum below the fraction line
  FeatureCost cost;
  const auto of_features = static_cast<double>((sizes.n_heads + sizes.n_kv_heads) * m);
  cost.kept = of_features + static_cast<double>((sizes.n_heads + sizes.n_kv_heads) * n);
  if (!use.causal) {
    // In place of a product with ones, keys are added up.
    cost.products = static_cast<double>(n_tokens) * static_cast<double>(sizes.n_heads * m * n) +
                    static_cast<double>(n_tokens) * static_cast<double>(sizes.n_kv_heads * m * (n - 1));
    return cost;
  }
  const Chunks chunks(n_tokens);
  cost.products = use.rotary ? running_sums_products(sizes, n_tokens, m, n - 1) +
                                   running_sums_products(sizes, n_tokens, m, 1)
                             : running_sums_products(sizes, n_tokens, m, n);
  cost.kept += static_cast<double>(sizes.n_heads * chunks.length) +
               static_cast<double>(sizes.n_kv_heads * m * n) / static_cast<double>(chunks.length);
  return cost;
}

double bytes_of(double numbers) { return numbers * static_cast<double>(kFloatBytes); }

}  // namespace

void count_linear_attention(CostAccount& account, std::string name, const AttentionOptions& options,
                            const MixerUse& use, const AttentionShape& shape) {
  const HeadSizes sizes(options);
  const auto n_rows = static_cast<double>(shape.batch_size);
  const double n_tokens = n_rows * static_cast<double>(shape.n_queries);
  const auto cost = feature_cost(sizes, sizes.head_dim, use, shape.n_queries);
  const auto projected = static_cast<double>(2 * sizes.q_width() + 2 * sizes.kv_width() + sizes.d_model);
  account.add(
      {.name = std::move(name),
       .kind = "self-attention",
       .shape = account.is_detailed() ? "linear, " + sizes.text() : std::string(),
       .parameters = sizes.parameters(options),
       .flops = 2 * (n_tokens * static_cast<double>(sizes.matrices()) + n_rows * cost.products),
       .activation_bytes = n_tokens * bytes_of(projected + cost.kept),
       .state_bytes = use.causal ? sizes.kv_width() * (sizes.head_dim + 1) * kFloatBytes : int64_t{0}});
}

void count_performer(CostAccount& account, std::string name, const PerformerOptions& options,
                     const MixerUse& use, const AttentionShape& shape) {
  const HeadSizes sizes(options.attention());
  const int64_t m = options.n_features().value_or(default_features(sizes.head_dim));
  const auto n_rows = static_cast<double>(shape.batch_size);
  const double n_tokens = n_rows * static_cast<double>(shape.n_queries);
  // Rotary positions come before the features: they do not divide the sums as in linear attention.
  const auto cost = feature_cost(sizes, m, {.causal = use.causal}, shape.n_queries);
  const auto projected = static_cast<double>(3 * sizes.q_width() + 3 * sizes.kv_width() + sizes.d_model);
  const auto features = static_cast<double>((sizes.q_width() + sizes.kv_width()) * m);
  account.add(
      {.name = std::move(name),
       .kind = "self-attention",
       .shape = account.is_detailed() ? fmt::format("{}, {} features", sizes.text(), m) : std::string(),
       .parameters = sizes.parameters(options.attention()),
       .flops = 2 * (n_tokens * (static_cast<double>(sizes.matrices()) + features) + n_rows * cost.products),
       .activation_bytes = n_tokens * bytes_of(projected + cost.kept),
       .state_bytes =
           use.causal ? sizes.n_kv_heads * (m * (sizes.head_dim + 1) + 1) * kFloatBytes : int64_t{0}});
}

void count_delta_net(CostAccount& account, std::string name, const DeltaNetOptions& options,
                     const AttentionShape& shape) {
  const int64_t d_model = options.d_model(), n_heads = options.n_heads();
  const int64_t n_key_heads = options.n_key_heads().value_or(n_heads);
  const int64_t head_dim = options.head_dim().value_or(d_model / n_heads);
  const int64_t width = n_heads * head_dim, channels = width + 2 * n_key_heads * head_dim;
  const int64_t n_gates = options.gated() ? 2 : 1;  // β and α
  const int64_t weights =
      d_model * (channels + n_gates * n_heads + width + (options.output_gate() ? width : 0));
  int64_t parameters = weights + channels * options.n_taps() + head_dim;
  if (options.qkv_bias()) parameters += channels;
  if (options.out_bias()) parameters += d_model;
  if (options.gated()) parameters += 2 * n_heads;

  const auto n_rows = static_cast<double>(shape.batch_size);
  const double n_tokens = n_rows * static_cast<double>(shape.n_queries);
  const Chunks chunks(shape.n_queries);
  const bool one_step = shape.n_queries == 1;
  // For each token and head. A chunk: keys and queries times keys, the triangular system, what the tokens
  // write; and three products with the sum before the chunk. A step: two products with the sum.
  const int64_t products =
      one_step ? 2 * head_dim * head_dim : 4 * chunks.length * head_dim + 3 * head_dim * head_dim;
  const double rule = n_rows * chunks.tokens() * static_cast<double>(n_heads * products);
  const int64_t kept = 3 * channels + (options.output_gate() ? 3 : 2) * width + 8 * width +
                       3 * n_heads * chunks.length + width * head_dim / chunks.length + d_model;
  const int64_t state =
      width * head_dim + (options.n_taps() > 0 ? (options.n_taps() - 1) * channels : int64_t{0});
  account.add({.name = std::move(name),
               .kind = "self-attention",
               .shape = account.is_detailed() ? fmt::format("delta, {} heads of {}, {} for keys", n_heads,
                                                            head_dim, n_key_heads)
                                              : std::string(),
               .parameters = parameters,
               .flops = 2 * (n_tokens * static_cast<double>(weights) + rule),
               .activation_bytes = n_tokens * bytes_of(static_cast<double>(kept)),
               .state_bytes = state * kFloatBytes});
}

void count_token_mlp(CostAccount& account, std::string name, const TokenMlpOptions& options, int64_t d_model,
                     const AttentionShape& shape) {
  const int64_t T = options.n_tokens(), F = options.d_tokens(), weights = 2 * T * F;
  const auto n_channels = static_cast<double>(shape.batch_size * d_model);
  // The tokens of each channel beside each other, the input and output of GELU, and the result.
  const double kept = n_channels * static_cast<double>(2 * T + 2 * F);
  account.add(
      {.name = std::move(name),
       .kind = "self-attention",
       .shape = account.is_detailed() ? fmt::format("mlp, {} → {} → {} tokens", T, F, T) : std::string(),
       .parameters = weights + (options.bias() ? T + F : 0),
       .flops = 2 * n_channels * static_cast<double>(weights),
       .activation_bytes = bytes_of(kept)});
}

void count_position_projection(CostAccount& account, std::string name,
                               const PositionProjectionOptions& options) {
  const int64_t n_matrices = options.separate_values() ? 2 : 1;
  account.add({.name = std::move(name),
               .kind = "linear",
               .shape = account.is_detailed() ? fmt::format("{} × {} → {}", n_matrices, options.n_positions(),
                                                            options.n_slots())
                                              : std::string(),
               .parameters = n_matrices * options.n_positions() * options.n_slots()});
}

void count_linformer(CostAccount& account, std::string name, const AttentionOptions& options, int64_t n_slots,
                     const AttentionShape& shape) {
  const HeadSizes sizes(options);
  const double n_tokens = static_cast<double>(shape.batch_size) * static_cast<double>(shape.n_queries);
  const auto slots = static_cast<double>(n_slots);
  const double products = static_cast<double>(sizes.matrices()) +
                          2 * slots * static_cast<double>(sizes.q_width() + sizes.kv_width());
  const double kept = static_cast<double>(2 * sizes.q_width() + 2 * sizes.kv_width() + sizes.d_model);
  account.add(
      {.name = std::move(name),
       .kind = "self-attention",
       .shape = account.is_detailed() ? fmt::format("{}, {} slots", sizes.text(), n_slots) : std::string(),
       .parameters = sizes.parameters(options),
       .flops = 2 * n_tokens * products,
       .activation_bytes = bytes_of(n_tokens * kept + static_cast<double>(shape.batch_size) * 2 * slots *
                                                          static_cast<double>(sizes.kv_width()))});
}

}  // namespace zoo

#include "models/config/cost.h"

#include <utility>

#include <fmt/format.h>

#include "models/config/model_config.h"

namespace zoo {
namespace {

double bytes(double n_tokens, int64_t numbers) {
  return n_tokens * static_cast<double>(numbers * kFloatBytes);
}

}  // namespace

void CostAccount::add(CostEntry entry) {
  flops_ += entry.flops;
  if (is_detailed()) entries_.push_back(std::move(entry));
}

std::string CostAccount::path(std::string_view parent, std::string_view name) const {
  if (!is_detailed()) return {};
  return parent.empty() ? std::string(name) : fmt::format("{}.{}", parent, name);
}

std::string CostAccount::path(std::string_view parent, std::string_view name, int64_t index) const {
  return is_detailed() ? fmt::format("{}.{}.{}", parent, name, index) : std::string();
}

void count_table(CostAccount& account, std::string name, int64_t rows, int64_t width, double n_tokens,
                 int64_t n_sides) {
  account.add({.name = std::move(name),
               .kind = "embedding",
               .shape = account.is_detailed() ? fmt::format("{} × {}", rows, width) : std::string(),
               .activation_bytes = bytes(n_tokens, width),
               .n_sides = n_sides});
}

void count_linear(CostAccount& account, std::string name, std::string kind, const LinearOptions& options,
                  double n_tokens) {
  const int64_t from = options.n_inputs();
  int64_t to = 0;
  for (const auto& part : options.parts()) to += part.n_outputs;
  account.add({.name = std::move(name),
               .kind = std::move(kind),
               .shape = account.is_detailed() ? fmt::format("{} → {}", from, to) : std::string(),
               .flops = 2 * n_tokens * static_cast<double>(from * to),
               .activation_bytes = bytes(n_tokens, to)});
}

void count_norms(CostAccount& account, std::string name, const NormOptions& options, int64_t count,
                 double n_tokens) {
  std::string shape;
  if (account.is_detailed()) {
    shape = count == 1 ? fmt::format("{}", options.size()) : fmt::format("{} × {}", count, options.size());
  }
  account.add({.name = std::move(name),
               .kind = "norm",
               .shape = std::move(shape),
               .activation_bytes = bytes(n_tokens, count * options.size())});
}

void count_feed_forward(CostAccount& account, std::string name, const FeedForwardOptions& options,
                        double n_tokens) {
  const int64_t d_model = options.d_model(), d_ff = options.d_ff();
  const int64_t n_in = is_gated(options.activation()) ? 2 : 1;
  const int64_t weights = (n_in + 1) * d_model * d_ff;
  // Inputs and outputs of the activation are kept, but SwiGLU's own backward pass does not need silu(gate).
  const int64_t n_kept = options.activation() == Activation::swiglu ? 3 : 2 * n_in;
  std::string shape;
  if (account.is_detailed())
    shape = fmt::format("{} → {} → {}, {}", d_model, d_ff, d_model, name_of(options.activation()));
  account.add({.name = std::move(name),
               .kind = "feed-forward",
               .shape = std::move(shape),
               .flops = 2 * n_tokens * static_cast<double>(weights),
               .activation_bytes = bytes(n_tokens, n_kept * d_ff + d_model)});
}

std::string HeadSizes::text() const {
  return fmt::format("{} heads of {}, {} for keys and values", n_heads, head_dim, n_kv_heads);
}

void count_attention(CostAccount& account, std::string name, std::string kind,
                     const AttentionOptions& options, const AttentionShape& shape) {
  const HeadSizes sizes(options);
  const int64_t d_model = sizes.d_model, q_width = sizes.q_width(), kv_width = sizes.kv_width();

  const auto b = static_cast<double>(shape.batch_size), t = static_cast<double>(shape.n_queries),
             s = static_cast<double>(shape.n_keys);
  const auto q = static_cast<double>(d_model * q_width), kv = static_cast<double>(d_model * kv_width);
  const double projections = 2 * b * (t * 2 * q + static_cast<double>(shape.n_key_maps) * s * 2 * kv);
  const auto& pattern = options.pattern();
  const double n_visible = pattern ? static_cast<double>(n_pairs(pattern->bands(shape.n_keys))) : t * s;
  const double scores =
      2 * static_cast<double>(shape.n_products) * b * n_visible * static_cast<double>(q_width);
  // Attention that is capped goes step by step: tanh and softmax keep their results.
  const double kept_pairs = options.softcap() ? 2 * b * n_visible * static_cast<double>(sizes.n_heads) : 0;
  const auto reach = pattern ? pattern->reach() : std::nullopt;
  const int64_t bytes_of_a_token = 2 * kv_width * kFloatBytes;
  account.add({.name = std::move(name),
               .kind = std::move(kind),
               .shape = account.is_detailed()
                            ? sizes.text() + (pattern ? ", " + pattern->description() : std::string())
                            : std::string(),
               .flops = projections + scores,
               .activation_bytes =
                   bytes(b * t, 2 * q_width + d_model) + bytes(b * s, 2 * kv_width) + bytes_of(kept_pairs),
               .state_bytes_per_token = reach ? 0 : bytes_of_a_token,
               .state_bytes = reach ? (reach->first + reach->recent) * bytes_of_a_token : 0});
}

}  // namespace zoo

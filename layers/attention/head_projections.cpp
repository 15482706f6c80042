#include "layers/attention/head_projections.h"

#include <fmt/format.h>
#include <torch/types.h>

namespace zoo {

HeadProjectionsImpl::HeadProjectionsImpl(const AttentionOptions& options_)
    : QkvProjectionsImpl(options_.d_model(), options_.n_heads(), options_.head_dim()),
      options(options_),
      n_kv_heads_(options.n_kv_heads().value_or(options.n_heads())) {
  TORCH_CHECK(options.n_heads() % n_kv_heads_ == 0, "n_heads ", options.n_heads(),
              " is not a multiple of n_kv_heads ", n_kv_heads_);
  make_qkv(options.n_heads(), n_kv_heads_, n_kv_heads_, options.projection(),
           {.queries_and_values = options.qkv_bias(), .keys = options.has_key_bias()});
  make_out(options.n_heads(), options.out_bias());
  if (options.qk_norm()) {
    q_norm = register_module("q_norm", Norm(*options.qk_norm()));
    k_norm = register_module("k_norm", Norm(*options.qk_norm()));
  }
}

HeadProjectionsImpl::Heads HeadProjectionsImpl::project_heads(const torch::Tensor& x,
                                                              const torch::Tensor& positions) {
  const auto parts = project(x, positions);
  Heads heads{.q = split_heads(parts[0], options.n_heads()),
              .k = split_heads(parts[1], n_kv_heads_),
              .v = split_heads(parts[2], n_kv_heads_)};
  if (q_norm) heads.q = q_norm(heads.q), heads.k = k_norm(heads.k);
  return heads;
}

Description HeadProjectionsImpl::described(std::string_view type) const {
  return Description(type)
      .add("d_model", options.d_model())
      .add("n_heads", options.n_heads())
      .add("n_kv_heads", n_kv_heads_)
      .add("head_dim", head_dim_)
      .add("projection", options.projection());
}

torch::Tensor HeadProjectionsImpl::merged(const torch::Tensor& mixed) {
  return out(mixed.transpose(1, 2).reshape({mixed.size(0), mixed.size(2), options.n_heads() * head_dim_}));
}

std::string HeadSizes::text() const {
  return fmt::format("{} heads of {}, {} for keys and values", n_heads, head_dim, n_kv_heads);
}

}  // namespace zoo

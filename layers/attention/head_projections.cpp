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
    const bool is_wide = options.qk_norm_width() != QkNormWidth::head;
    const auto norm_of = [&](int64_t n_heads) {
      return Norm(NormOptions(*options.qk_norm()).size(is_wide ? n_heads * head_dim_ : head_dim_));
    };
    q_norm = register_module("q_norm", norm_of(options.n_heads()));
    k_norm = register_module("k_norm", norm_of(n_kv_heads_));
  }
}

HeadProjectionsImpl::Heads HeadProjectionsImpl::project_heads(const torch::Tensor& x,
                                                              const torch::Tensor& positions) {
  const auto parts = project(x, positions);
  return {.q = normalised_heads(parts[0], options.n_heads(), q_norm),
          .k = normalised_heads(parts[1], n_kv_heads_, k_norm),
          .v = split_heads(clipped(parts[2]), n_kv_heads_)};
}

torch::Tensor HeadProjectionsImpl::normalised_heads(const torch::Tensor& x, int64_t n_heads,
                                                    Norm& norm) const {
  if (!norm) return split_heads(clipped(x), n_heads);
  switch (options.qk_norm_width()) {
    case QkNormWidth::head:
      return clipped(norm(split_heads(x, n_heads)));
    case QkNormWidth::all_heads:
      return split_heads(clipped(norm(x)), n_heads);
    case QkNormWidth::each_head:
      break;
  }
  const auto of_heads = [&](const torch::Tensor& weight) {  // (N, 1, Dh)
    return weight.defined() ? weight.view({n_heads, 1, head_dim_}) : weight;
  };
  const auto plain = torch::ones({head_dim_}, norm->weight.options());
  const auto gain = norm->options.unit_offset() ? norm->weight + 1.0 : norm->weight;
  auto y =
      (*norm->options.formula())(split_heads(x, n_heads), {.gain = plain, .bias = {}}, norm->options.eps());
  y = y * of_heads(gain).to(y.scalar_type());
  if (norm->bias.defined()) y = y + of_heads(norm->bias).to(y.scalar_type());
  return clipped(y);
}

torch::Tensor HeadProjectionsImpl::clipped(const torch::Tensor& x) const {
  const auto limit = options.qkv_clip();
  return limit ? x.clamp(-*limit, *limit) : x;
}

Description HeadProjectionsImpl::described(std::string_view type) const {
  return Description(type)
      .add("d_model", options.d_model())
      .add("n_heads", options.n_heads())
      .add("n_kv_heads", n_kv_heads_)
      .add("head_dim", head_dim_)
      .add("projection", options.projection());
}

torch::Tensor HeadProjectionsImpl::merged(const torch::Tensor& mixed, const AttentionContext& context) {
  auto heads = mixed.transpose(1, 2);  // (B, T, H, Dh)
  if (context.heads) heads = (*context.heads)(heads);
  return out(heads.reshape({heads.size(0), heads.size(1), options.n_heads() * head_dim_}));
}

std::string HeadSizes::text() const {
  return fmt::format("{} heads of {}, {} for keys and values", n_heads, head_dim, n_kv_heads);
}

}  // namespace zoo

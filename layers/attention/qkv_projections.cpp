#include "layers/attention/qkv_projections.h"

#include <utility>

#include <torch/types.h>

namespace zoo {

torch::Tensor with_positions(const torch::Tensor& x, const torch::Tensor& positions) {
  return positions.defined() ? x + positions : x;
}

QkvProjectionsImpl::QkvProjectionsImpl(int64_t d_model, int64_t n_heads, std::optional<int64_t> head_dim)
    : d_model_(d_model) {
  TORCH_CHECK(head_dim || d_model % n_heads == 0, "d_model ", d_model, " is not a multiple of n_heads ",
              n_heads);
  head_dim_ = head_dim.value_or(d_model / n_heads);
}

void QkvProjectionsImpl::make_qkv(int64_t n_query_heads, int64_t n_key_heads, int64_t n_value_heads,
                                  Projection projection, const Biases& biases) {
  const LinearPart queries{n_query_heads * head_dim_, WeightUse::query, "q"},
      keys{n_key_heads * head_dim_, WeightUse::hidden, "k"},
      values{n_value_heads * head_dim_, WeightUse::hidden, "v"};
  const auto map = [&](std::vector<LinearPart> parts, bool bias) {
    return Linear(LinearOptions(d_model_, std::move(parts)).bias(bias));
  };
  if (projection == Projection::fused) {
    TORCH_CHECK(biases.keys == biases.queries_and_values, "a fused projection has one bias for all its maps");
    qkv = register_module("qkv", map({queries, keys, values}, biases.keys));
  } else {
    q = register_module("q", map({queries}, biases.queries_and_values));
    k = register_module("k", map({keys}, biases.keys));
    v = register_module("v", map({values}, biases.queries_and_values));
  }
}

void QkvProjectionsImpl::make_out(int64_t n_heads, bool bias) {
  out = register_module(
      "out", Linear(linear_options(n_heads * head_dim_, d_model_, WeightUse::residual_output).bias(bias)));
}

std::vector<torch::Tensor> QkvProjectionsImpl::project(const torch::Tensor& x,
                                                       const torch::Tensor& positions) {
  const auto placed = with_positions(x, positions);
  if (!qkv) return {q(placed), k(placed), v(x)};
  if (!positions.defined()) return qkv->forward_parts(x);
  return {qkv->forward_some(placed, {.first = 0, .count = 1}),
          qkv->forward_some(placed, {.first = 1, .count = 1}),
          qkv->forward_some(x, {.first = 2, .count = 1})};
}

torch::Tensor QkvProjectionsImpl::project_stacked(const torch::Tensor& x, const torch::Tensor& positions) {
  return qkv && !positions.defined() ? qkv(x) : torch::cat(project(x, positions), -1);
}

torch::Tensor QkvProjectionsImpl::split_heads(const torch::Tensor& x, int64_t n_heads) const {
  return x.view({x.size(0), x.size(1), n_heads, head_dim_}).transpose(1, 2);
}

}  // namespace zoo

#include "layers/folding/triangles.h"

#include <algorithm>
#include <cmath>

namespace zoo {
namespace {

// What AlphaFold adds to the scores of hidden keys.
constexpr double kHiddenKey = -1e9;

}  // namespace

TriangleMultiplicationImpl::TriangleMultiplicationImpl(int64_t width, TriangleEdges edges) : edges_(edges) {
  const LinearOptions options(width, width);
  norm_in = register_module("norm_in", Norm(NormOptions(width)));
  norm_out = register_module("norm_out", Norm(NormOptions(width)));
  left = register_module("left", Linear(options));
  left_gate = register_module("left_gate", Linear(options));
  right = register_module("right", Linear(options));
  right_gate = register_module("right_gate", Linear(options));
  gate = register_module("gate", Linear(options));
  out = register_module("out", Linear(linear_options(width, width, WeightUse::residual_output)));
}

torch::Tensor TriangleMultiplicationImpl::forward(const torch::Tensor& pairs, const torch::Tensor& mask) {
  const auto z = norm_in(pairs), keep = mask.unsqueeze(-1);
  // (B, C, L, L): each channel is a product of two matrices.
  auto a = (keep * left_gate(z).sigmoid() * left(z)).permute({0, 3, 1, 2});
  auto b = (keep * right_gate(z).sigmoid() * right(z)).permute({0, 3, 1, 2});
  if (edges_ == TriangleEdges::outgoing) {
    b = b.transpose(-1, -2);
  } else {
    a = a.transpose(-1, -2);
  }
  const auto sums = a.matmul(b).permute({0, 2, 3, 1});
  return gate(z).sigmoid() * out(norm_out(sums));
}

TriangleAttentionImpl::TriangleAttentionImpl(int64_t width, int64_t n_heads, TriangleNode node)
    : n_heads_(n_heads), node_(node) {
  TORCH_CHECK(width % n_heads == 0, "the width ", width, " is not a multiple of ", n_heads, " heads");
  const auto plain = LinearOptions(width, width).bias(false);
  norm = register_module("norm", Norm(NormOptions(width)));
  bias = register_module("bias", Linear(LinearOptions(width, n_heads).bias(false)));
  q = register_module("q", Linear(linear_options(width, width, WeightUse::query).bias(false)));
  k = register_module("k", Linear(plain));
  v = register_module("v", Linear(plain));
  gate = register_module("gate", Linear(LinearOptions(width, width)));
  out = register_module("out", Linear(linear_options(width, width, WeightUse::residual_output)));
}

torch::Tensor TriangleAttentionImpl::attend(const torch::Tensor& pairs, const torch::Tensor& mask_bias,
                                            const torch::Tensor& pair_bias) {
  const auto heads = [&](Linear& map) { return map(pairs).unflatten(-1, {n_heads_, -1}).transpose(-2, -3); };
  const auto queries =
      heads(q) / std::sqrt(static_cast<double>(out->n_inputs() / n_heads_));  // (B, I, H, L, Dh)
  const auto weights = (queries.matmul(heads(k).transpose(-1, -2)) + mask_bias + pair_bias).softmax(-1);
  const auto mixed = weights.matmul(heads(v)).transpose(-2, -3).flatten(-2);
  return out(gate(pairs).sigmoid() * mixed);
}

torch::Tensor TriangleAttentionImpl::forward(const torch::Tensor& pairs, const torch::Tensor& mask,
                                             std::optional<int64_t> rows) {
  const bool ends = node_ == TriangleNode::ending;
  const auto z = norm(ends ? pairs.transpose(1, 2) : pairs);
  const auto keep = ends ? mask.transpose(1, 2) : mask;
  const auto mask_bias = (kHiddenKey * (1 - keep)).unsqueeze(2).unsqueeze(2);  // (B, L, 1, 1, L)
  const auto pair_bias = bias(z).permute({0, 3, 1, 2}).unsqueeze(1);           // (B, 1, H, L, L)
  const int64_t length = z.size(1), step = std::min(rows.value_or(length), length);
  std::vector<torch::Tensor> parts;
  for (int64_t first = 0; first < length; first += step) {
    const int64_t count = std::min(step, length - first);
    parts.push_back(attend(z.narrow(1, first, count), mask_bias.narrow(1, first, count), pair_bias));
  }
  const auto update = torch::cat(parts, 1);
  return ends ? update.transpose(1, 2) : update;
}

}  // namespace zoo

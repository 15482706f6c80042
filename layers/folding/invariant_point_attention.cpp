#include "layers/folding/invariant_point_attention.h"

#include <cmath>

#include "layers/weights/construction.h"

namespace zoo {
namespace {

// What AlphaFold adds to the scores of pairs of which one is padding, and to squared lengths.
constexpr double kHiddenPair = -1e5, kSmall = 1e-8;
// softplus(x) = 1: every head's points count the same at first.
constexpr double kFirstWeight = 0.541324854612918;

/// Linear outputs (B, L, 3·H·P) as points (B, L, H, P, 3) that move with their frames.
torch::Tensor global_points(const torch::Tensor& numbers, int64_t n_heads, const Rigid& frames) {
  const auto local = numbers.unflatten(-1, {3, -1}).transpose(-1, -2);  // (B, L, H·P, 3)
  return frames.unsqueeze_last().apply(local).unflatten(2, {n_heads, -1});
}

}  // namespace

InvariantPointAttentionImpl::InvariantPointAttentionImpl(const InvariantPointAttentionOptions& options_)
    : options(options_) {
  const int64_t cs = options.residue_width(), cz = options.pair_width(), heads = options.n_heads();
  const int64_t width = heads * options.head_width();
  q = register_module("q", Linear(linear_options(cs, width, WeightUse::query)));
  kv = register_module("kv", Linear(LinearOptions(cs, 2 * width)));
  q_points = register_module("q_points", Linear(LinearOptions(cs, 3 * heads * options.query_points())));
  kv_points = register_module(
      "kv_points", Linear(LinearOptions(cs, 3 * heads * (options.query_points() + options.value_points()))));
  bias = register_module("bias", Linear(LinearOptions(cz, heads)));
  const int64_t all = heads * (cz + options.head_width() + 4 * options.value_points());
  out = register_module("out", Linear(linear_options(all, cs, WeightUse::residual_output)));
  head_weights = register_parameter(
      "head_weights", drawn_tensor({heads}, [](torch::Tensor& weights) { weights.fill_(kFirstWeight); }));
}

torch::Tensor InvariantPointAttentionImpl::point_scores(const torch::Tensor& queries,
                                                        const torch::Tensor& keys) const {
  // Head by head, so that the differences of all pairs need less memory.
  std::vector<torch::Tensor> distances;
  for (int64_t head = 0; head < options.n_heads(); ++head) {
    const auto difference = queries.select(2, head).unsqueeze(2) - keys.select(2, head).unsqueeze(1);
    distances.push_back(difference.square().sum({-1, -2}));  // (B, L, L)
  }
  const double scale = std::sqrt(1.0 / (3 * (static_cast<double>(options.query_points()) * 9 / 2)));
  const auto weights = (torch::softplus(head_weights) * scale).view({1, -1, 1, 1});
  return torch::stack(distances, 1) * weights * 0.5;
}

torch::Tensor InvariantPointAttentionImpl::forward(const torch::Tensor& residues, const torch::Tensor& pairs,
                                                   const Rigid& frames, const torch::Tensor& mask) {
  const int64_t heads = options.n_heads(), width = options.head_width(), n_points = options.query_points();
  const auto by_head = [&](const torch::Tensor& x) { return x.unflatten(-1, {heads, -1}).transpose(1, 2); };
  const auto queries = by_head(q(residues));  // (B, H, L, Dh)
  const auto keys_and_values = by_head(kv(residues)).split(width, -1);
  const auto query_points = global_points(q_points(residues), heads, frames);
  const auto points = global_points(kv_points(residues), heads, frames);
  const auto key_points = points.narrow(3, 0, n_points);
  const auto value_points = points.narrow(3, n_points, options.value_points());

  auto scores = queries.matmul(keys_and_values[0].transpose(-1, -2)) *
                std::sqrt(1.0 / (3.0 * static_cast<double>(width)));
  scores = scores + std::sqrt(1.0 / 3) * bias(pairs).permute({0, 3, 1, 2});
  scores = scores - point_scores(query_points, key_points);
  const auto pair_mask = mask.unsqueeze(-1) * mask.unsqueeze(-2);
  const auto weights = (scores + (kHiddenPair * (1 - pair_mask)).unsqueeze(1)).softmax(-1);  // (B, H, L, L)

  const auto mixed = weights.matmul(keys_and_values[1]).transpose(1, 2).flatten(-2);  // (B, L, H·Dh)
  const auto mixed_points = weights.matmul(value_points.transpose(1, 2).flatten(-2))
                                .unflatten(-1, {-1, 3})
                                .transpose(1, 2)
                                .flatten(2, 3);  // (B, L, H·P, 3)
  const auto local = frames.unsqueeze_last().apply_inverse(mixed_points);
  const auto lengths = (local.square().sum(-1) + kSmall).sqrt();
  const auto mixed_pairs = weights.transpose(1, 2).matmul(pairs).flatten(-2);  // (B, L, H·Cz)
  return out(torch::cat({mixed, local.transpose(-1, -2).flatten(-2), lengths, mixed_pairs}, -1));
}

}  // namespace zoo

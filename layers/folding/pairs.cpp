#include "layers/folding/pairs.h"

#include <cmath>
#include <limits>

#include "layers/weights/embedding.h"

namespace zoo {

RelativePositionsImpl::RelativePositionsImpl(int64_t most, int64_t width) : most_(most) {
  table = register_module("table", make_table(2 * most + 2, width));
}

torch::Tensor RelativePositionsImpl::forward(const torch::Tensor& index, const torch::Tensor& mask) {
  const auto distances = (index.unsqueeze(1) - index.unsqueeze(2)).clamp(-most_, most_) + most_ + 1;
  return table(distances.masked_fill(mask == 0, 0));
}

void RelativePositionsImpl::visit_weights(const WeightVisitor& visit) const {
  visit({table->weight, 0, table->weight.size(0), WeightUse::table});
}

ResiduesToPairsImpl::ResiduesToPairsImpl(int64_t residue_width, int64_t pair_width) {
  TORCH_CHECK(pair_width % 2 == 0, "the width of pairs ", pair_width, " is not even");
  norm = register_module("norm", Norm(NormOptions(residue_width)));
  in = register_module("in", Linear(LinearOptions(residue_width, pair_width)));
  out = register_module("out", Linear(linear_options(pair_width, pair_width, WeightUse::residual_output)));
}

torch::Tensor ResiduesToPairsImpl::forward(const torch::Tensor& residues) {
  const auto halves = in(norm(residues)).chunk(2, -1);
  const auto first = halves[0].unsqueeze(1), second = halves[1].unsqueeze(2);
  return out(torch::cat({first * second, first - second}, -1));
}

ResidueAttentionImpl::ResidueAttentionImpl(int64_t residue_width, int64_t pair_width, int64_t n_heads)
    : n_heads_(n_heads) {
  TORCH_CHECK(residue_width % n_heads == 0, "the width ", residue_width, " is not a multiple of ", n_heads,
              " heads");
  norm = register_module("norm", Norm(NormOptions(residue_width)));
  pair_norm = register_module("pair_norm", Norm(NormOptions(pair_width)));
  bias = register_module("bias", Linear(LinearOptions(pair_width, n_heads).bias(false)));
  qkv = register_module("qkv", Linear(LinearOptions(residue_width, 3 * residue_width).bias(false)));
  gate = register_module("gate", Linear(LinearOptions(residue_width, residue_width)));
  out = register_module("out",
                        Linear(linear_options(residue_width, residue_width, WeightUse::residual_output)));
}

torch::Tensor ResidueAttentionImpl::forward(const torch::Tensor& residues, const torch::Tensor& pairs,
                                            const torch::Tensor& mask) {
  const auto x = norm(residues);
  const auto heads = qkv(x).unflatten(-1, {n_heads_, -1}).transpose(1, 2).chunk(3, -1);  // (B, H, L, Dh) each
  const auto queries = heads[0] / std::sqrt(static_cast<double>(heads[0].size(-1)));
  const auto scores =
      queries.matmul(heads[1].transpose(-1, -2)) + bias(pair_norm(pairs)).permute({0, 3, 1, 2});
  const auto hidden = (mask == 0).unsqueeze(1).unsqueeze(1);
  const auto weights = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()).softmax(-1);
  return out(gate(x).sigmoid() * weights.matmul(heads[2]).transpose(1, 2).flatten(-2));
}

FoldingTransitionImpl::FoldingTransitionImpl(int64_t width) {
  norm = register_module("norm", Norm(NormOptions(width)));
  up = register_module("up", Linear(LinearOptions(width, 4 * width)));
  down = register_module("down", Linear(linear_options(4 * width, width, WeightUse::residual_output)));
}

torch::Tensor FoldingTransitionImpl::forward(const torch::Tensor& x) { return down(up(norm(x)).relu()); }

}  // namespace zoo

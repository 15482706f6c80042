#include "layers/folding/folding_block.h"

#include "kernels/dropout.h"

namespace zoo {

FoldingBlockImpl::FoldingBlockImpl(const FoldingBlockOptions& options_) : options(options_) {
  const int64_t cs = options.residue_width(), cz = options.pair_width();
  residue_attention = register_module("residue_attention", ResidueAttention(cs, cz, options.residue_heads()));
  residue_transition = register_module("residue_transition", FoldingTransition(cs));
  residues_to_pairs = register_module("residues_to_pairs", ResiduesToPairs(cs, cz));
  outgoing = register_module("outgoing", TriangleMultiplication(cz, TriangleEdges::outgoing));
  incoming = register_module("incoming", TriangleMultiplication(cz, TriangleEdges::incoming));
  starting = register_module("starting", TriangleAttention(cz, options.pair_heads(), TriangleNode::starting));
  ending = register_module("ending", TriangleAttention(cz, options.pair_heads(), TriangleNode::ending));
  pair_transition = register_module("pair_transition", FoldingTransition(cz));
}

torch::Tensor FoldingBlockImpl::thinned(const torch::Tensor& update, int64_t shared) const {
  if (!is_training() || options.dropout() == 0) return update;
  auto sizes = update.sizes().vec();
  sizes[static_cast<size_t>(shared)] = 1;
  return update * dropout(torch::ones(sizes, update.options().requires_grad(false)), 2 * options.dropout());
}

Representations FoldingBlockImpl::forward(const Representations& input, const FoldingContext& context) {
  const double p = is_training() ? options.dropout() : 0.0;
  constexpr int64_t rows = 1, columns = 2;
  auto s = input.residues, z = input.pairs;
  s = s + dropout(residue_attention(s, z, context.mask), p);
  s = s + dropout(residue_transition(s), p);
  z = z + residues_to_pairs(s);
  z = z + thinned(outgoing(z, context.pair_mask), columns);
  z = z + thinned(incoming(z, context.pair_mask), rows);
  z = z + thinned(starting(z, context.pair_mask, context.rows_at_a_time), columns);
  z = z + thinned(ending(z, context.pair_mask, context.rows_at_a_time), rows);
  z = z + dropout(pair_transition(z), p);
  return {.residues = s, .pairs = z};
}

void count_folding_block(const FoldingCost& cost, const std::string& name,
                         const FoldingBlockOptions& options) {
  const double n = cost.n_residues(), n_pairs = cost.n_pairs(), length = cost.length;
  const auto cs = static_cast<double>(options.residue_width()),
             cz = static_cast<double>(options.pair_width());
  const auto residue_heads = static_cast<double>(options.residue_heads()),
             pair_heads = static_cast<double>(options.pair_heads());
  const auto path = [&](const char* part) { return cost.account.path(name, part); };
  cost.add(path("residue_attention"), "self-attention",
           n * 5 * cs * cs + 2 * n_pairs * cs + n_pairs * cz * residue_heads,
           6 * n * cs + n_pairs * (cz + residue_heads));
  cost.add(path("residue_transition"), "feed-forward", 8 * n * cs * cs, 9 * n * cs);
  cost.add(path("residues_to_pairs"), "linear", n * cs * cz + n_pairs * cz * cz, 2 * n_pairs * cz);
  for (const auto* part : {"outgoing", "incoming"})
    cost.add(path(part), "triangle multiplication", n_pairs * cz * (6 * cz + length), 9 * n_pairs * cz);
  for (const auto* part : {"starting", "ending"}) {
    cost.add(path(part), "triangle attention", n_pairs * cz * (5 * cz + pair_heads + 2 * length),
             n_pairs * (7 * cz + length * pair_heads));
  }
  cost.add(path("pair_transition"), "feed-forward", 8 * n_pairs * cz * cz, 9 * n_pairs * cz);
}

}  // namespace zoo

#include "layers/folding/folding_trunk.h"

#include <torch/utils.h>

#include "layers/folding/confidence.h"
#include "layers/weights/embedding.h"

namespace zoo {
namespace {

constexpr int64_t kRecycledBins = 15;

}  // namespace

FoldingTrunkImpl::FoldingTrunkImpl(const FoldingTrunkOptions& options_) : options(options_) {
  const int64_t cs = options.block().residue_width(), cz = options.block().pair_width();
  const auto& inner = options.structure().attention();
  relative_positions = register_module("relative_positions", RelativePositions(options.most_distance(), cz));
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < options.n_blocks(); ++i) list->push_back(blocks.emplace_back(options.block()));
  register_module("blocks", list);
  recycled_residues = register_module("recycled_residues", Norm(NormOptions(cs)));
  recycled_pairs = register_module("recycled_pairs", Norm(NormOptions(cz)));
  recycled_distances = register_module("recycled_distances", make_table(kRecycledBins, cz));
  to_residues = register_module("to_residues", Linear(LinearOptions(cs, inner.residue_width())));
  to_pairs = register_module("to_pairs", Linear(LinearOptions(cz, inner.pair_width())));
  structure_module = register_module("structure_module", StructureModule(options.structure()));
}

Folded FoldingTrunkImpl::pass(const FoldingInput& input, const Representations& recycled,
                              const torch::Tensor& distances) {
  Representations x{.residues = input.vectors + recycled_residues(recycled.residues),
                    .pairs = recycled_pairs(recycled.pairs) + recycled_distances(distances)};
  x.pairs = x.pairs + relative_positions(input.index, input.context.pair_mask);
  for (auto& block : blocks) x = block(x, input.context);
  const Representations inner{.residues = to_residues(x.residues), .pairs = to_pairs(x.pairs)};
  auto structures = structure_module(inner, input.residues, input.context.mask);
  return {.structures = std::move(structures), .representations = std::move(x)};
}

Folded FoldingTrunkImpl::forward(const FoldingInput& input) {
  TORCH_CHECK(input.passes >= 1, "folding needs at least one pass");
  const auto B = input.vectors.size(0), L = input.vectors.size(1);
  const auto plain = input.vectors.options().requires_grad(false);
  Representations recycled{.residues = torch::zeros_like(input.vectors, plain),
                           .pairs = torch::zeros({B, L, L, options.block().pair_width()}, plain)};
  auto distances = torch::zeros({B, L, L}, plain.dtype(torch::kInt64));
  for (int64_t i = 1; i < input.passes; ++i) {
    const torch::NoGradGuard no_grad;
    auto folded = pass(input, recycled, distances);
    distances = distance_bins(folded.structures.positions[-1], kRecycledBins);
    recycled = std::move(folded.representations);
  }
  return pass(input, recycled, distances);
}

void FoldingTrunkImpl::visit_weights(const WeightVisitor& visit) const {
  visit({recycled_distances->weight, 0, recycled_distances->weight.size(0), WeightUse::table});
}

void count_folding_trunk(const FoldingCost& cost, const std::string& name,
                         const FoldingTrunkOptions& options) {
  const auto& account = cost.account;
  const auto& inner = options.structure().attention();
  for (int64_t i = 0; i < options.n_blocks(); ++i)
    count_folding_block(cost, account.path(name, "blocks", i), options.block());
  const auto add_linear = [&](const char* part, double n, int64_t from, int64_t to) {
    cost.add(account.path(name, part), "linear", n * static_cast<double>(from * to),
             n * static_cast<double>(to));
  };
  add_linear("to_residues", cost.n_residues(), options.block().residue_width(), inner.residue_width());
  add_linear("to_pairs", cost.n_pairs(), options.block().pair_width(), inner.pair_width());
  count_structure_module(cost, account.path(name, "structure_module"), options.structure());
}

}  // namespace zoo

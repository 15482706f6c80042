#pragma once
// From vectors of residues to a structure, in several passes: each begins with what the last one found. This
// is recycling (Jumper et al. 2021, algorithms 31 and 32), as ESMFold does it (Lin et al. 2023).

#include <vector>

#include <torch/nn/modules/embedding.h>

#include "layers/folding/folding_block.h"
#include "layers/folding/structure_module.h"

namespace zoo {

struct FoldingTrunkOptions {
  FoldingTrunkOptions(FoldingBlockOptions block, StructureModuleOptions structure)
      : block_(block), structure_(std::move(structure)) {}
  TORCH_ARG(FoldingBlockOptions, block);
  TORCH_ARG(StructureModuleOptions, structure);
  TORCH_ARG(int64_t, n_blocks) = 48;
  /// Distances along the chain beyond this one count as this one.
  TORCH_ARG(int64_t, most_distance) = 32;
};

/// Chains that are folded.
struct FoldingInput {
  torch::Tensor vectors;   // (B, L, Cs): of residues
  torch::Tensor residues;  // (B, L) int64: their kinds
  torch::Tensor index;     // (B, L) int64: their places in the chain
  FoldingContext context;
  int64_t passes = 1;  // at least one
};

struct Folded {
  Structures structures;            // of the last pass
  Representations representations;  // likewise, from the last block
};

class FoldingTrunkImpl : public Cloneable<FoldingTrunkImpl>, public WeightOwner {
 public:
  explicit FoldingTrunkImpl(const FoldingTrunkOptions& options);
  /// Gradients pass through the last pass only.
  Folded forward(const FoldingInput& input);
  void visit_weights(const WeightVisitor& visit) const override;

  FoldingTrunkOptions options;
  RelativePositions relative_positions{nullptr};
  std::vector<FoldingBlock> blocks;
  Norm recycled_residues{nullptr}, recycled_pairs{nullptr};
  torch::nn::Embedding recycled_distances{nullptr};  // (15, Cz)
  Linear to_residues{nullptr}, to_pairs{nullptr};    // to the widths of the structure module
  StructureModule structure_module{nullptr};

 private:
  Folded pass(const FoldingInput& input, const Representations& recycled, const torch::Tensor& distances);
};
TORCH_MODULE(FoldingTrunk);

/// Of products of matrices alone.
void count_folding_trunk(const FoldingCost& cost, const std::string& name,
                         const FoldingTrunkOptions& options);

}  // namespace zoo

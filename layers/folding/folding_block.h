#pragma once
// One block of a folding trunk (Lin et al. 2023, supplement, "folding block"): the Evoformer's block (Jumper
// et al. 2021, algorithm 6) for one sequence in place of an alignment.

#include <optional>
#include <string>

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/folding/folding_cost.h"
#include "layers/folding/pairs.h"
#include "layers/folding/triangles.h"

namespace zoo {

struct FoldingBlockOptions {
  FoldingBlockOptions(int64_t residue_width, int64_t pair_width)
      : residue_width_(residue_width), pair_width_(pair_width) {}
  TORCH_ARG(int64_t, residue_width);  // Cs
  TORCH_ARG(int64_t, pair_width);     // Cz
  TORCH_ARG(int64_t, residue_heads) = 32;
  TORCH_ARG(int64_t, pair_heads) = 4;
  /// Of the updates of residues; those of pairs lose whole rows and columns with twice this rate.
  TORCH_ARG(double, dropout) = 0.0;
};

/// The two representations of a chain.
struct Representations {
  torch::Tensor residues;  // (B, L, Cs)
  torch::Tensor pairs;     // (B, L, L, Cz)
};

/// What is true of a batch of chains: which residues and pairs are no padding, and how pairs are computed.
struct FoldingContext {
  torch::Tensor mask;                                    // (B, L) float, 0 or 1
  torch::Tensor pair_mask;                               // (B, L, L) float
  std::optional<int64_t> rows_at_a_time = std::nullopt;  // see TriangleAttention
};

class FoldingBlockImpl : public Cloneable<FoldingBlockImpl> {
 public:
  explicit FoldingBlockImpl(const FoldingBlockOptions& options);
  Representations forward(const Representations& input, const FoldingContext& context);

  FoldingBlockOptions options;
  ResidueAttention residue_attention{nullptr};
  FoldingTransition residue_transition{nullptr}, pair_transition{nullptr};
  ResiduesToPairs residues_to_pairs{nullptr};
  TriangleMultiplication outgoing{nullptr}, incoming{nullptr};
  TriangleAttention starting{nullptr}, ending{nullptr};

 private:
  /// An update of pairs without what dropout takes: the same in all rows (dimension 1) or all columns (2).
  torch::Tensor thinned(const torch::Tensor& update, int64_t shared) const;
};
TORCH_MODULE(FoldingBlock);

/// `name`: the path of the block.
void count_folding_block(const FoldingCost& cost, const std::string& name,
                         const FoldingBlockOptions& options);

}  // namespace zoo

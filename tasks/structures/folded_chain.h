#pragma once
// The structure of a protein as a model predicts it, and how sure the model is.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <torch/types.h>

#include "data/structures/sequences.h"
#include "data/structures/structure.h"
#include "models/model.h"
#include "tasks/experiment.h"

namespace zoo {

/// Members that a model does not predict are empty or undefined, such as the confidence.
struct FoldedChain {
  Structure structure;  // the chain A, with pLDDT as B factors, or 0; an unknown residue has no atoms
  std::vector<double> plddt = {};         // of each residue's CA, 0 to 100
  std::optional<double> mean_plddt = {};  // over all atoms
  std::optional<double> tm_score = {};    // predicted, 0 to 1
  torch::Tensor aligned_error = {};  // (L, L) Å: the predicted error of residue j where residue i is aligned
};

/// The longest chain that is folded: memory grows with its square.
inline constexpr int64_t kMostFoldedResidues = 4096;

/// Whether models of this experiment fold.
bool folds(const Experiment& experiment);

/// Letters as numbers of residues (base/residues/residues.h): (L) int64.
torch::Tensor residues_of(std::string_view letters);

struct PlacingOptions {
  std::span<const uint64_t> seeds = {};          // of a FlowModel's noise, one for each row; empty: 0, 1, …
  std::optional<int64_t> passes = std::nullopt;  // of a FoldingModel, see FoldingModel::fold()
};
/// The places of N, CA, C and O: (B, L, 4, 3) float in Å. `chains` are on the model's device. Throws
/// UsageError if the model does not fold, or has no passes.
torch::Tensor place_backbones(Model& model, const TokenBatch& chains, const PlacingOptions& options = {});

/// Folds a chain. passes: see FoldingModel::fold(). Throws UsageError if the model does not fold, or has no
/// passes, DataError if the chain is too long, CheckpointError if the model's outputs are NaN.
FoldedChain fold_chain(Model& model, const NamedSequence& chain,
                       std::optional<int64_t> passes = std::nullopt);

}  // namespace zoo

#pragma once
// The interface of models that turn the sequence of a protein into a structure.

#include <cstdint>
#include <optional>

#include <torch/types.h>

#include "layers/folding/folding_trunk.h"
#include "models/model.h"

namespace zoo {

/// What a model says about a batch of chains. Rows of padding have any values.
struct Folding {
  Folded folded;
  torch::Tensor distance_logits =
      {};                           // (B, L, L, 64): bins of the distance of CB atoms, the same for ij and ji
  torch::Tensor error_logits = {};  // (B, L, L, 64): see predicted_aligned_error() and predicted_tm_score()
  torch::Tensor residue_logits = {};  // (B, L, 23): the kinds of hidden residues
  /// (K, B, L, 37, 50): bins of lDDT after each block of the structure module, for the atoms of kAtomNames.
  torch::Tensor lddt_logits = {};
};

class FoldingModel {
 public:
  virtual ~FoldingModel() = default;
  /// batch.input has kinds of residues (base/residues/residues.h) in place of tokens. passes: see
  /// FoldingInput; default: as configured.
  virtual Folding fold(const Batch& batch, std::optional<int64_t> passes = std::nullopt) = 0;
};

/// A model's interface for folding, or null if it does not fold.
inline FoldingModel* folding_of(Model& model) { return dynamic_cast<FoldingModel*>(&model); }

}  // namespace zoo

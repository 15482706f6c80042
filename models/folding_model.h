#pragma once
// The interfaces of models that turn the sequence of a protein into a structure.

#include <cstdint>
#include <optional>

#include <torch/types.h>

#include "base/residues/residues.h"
#include "layers/folding/folding_trunk.h"
#include "models/model.h"

namespace zoo {

/// What a model says about a batch of chains. Rows of padding have any values. A tensor that a model does
/// not compute is undefined.
struct Folding {
  Folded folded;
  torch::Tensor distance_logits =
      {};                           // (B, L, L, 64): bins of the distance of CB atoms, the same for ij and ji
  torch::Tensor error_logits = {};  // (B, L, L, 64): see predicted_aligned_error() and predicted_tm_score()
  torch::Tensor residue_logits = {};  // (B, L, 23): the kinds of hidden residues
  /// (K, B, L, 37, 50): bins of lDDT after each block of the structure module, for the atoms of kAtomNames.
  torch::Tensor lddt_logits = {};
  /// How many of the atoms of structures.positions the model has learnt to place, the first ones: all, or
  /// those of the backbone.
  int64_t n_places = kAtomPlaces;
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

/// (B, L) float: 1 for residues, 0 for padding.
torch::Tensor residue_mask(const TokenBatch& chains, const torch::TensorOptions& options);
/// Of the states (B, L, D) of residues those at batch.positions, (N, D), or the means of the rows, (B, D).
torch::Tensor residue_features(const torch::Tensor& hidden, const Batch& batch);

/// Chains, and what a FlowModel knows of their residues at all times.
struct FlowChains {
  TokenBatch chains;
  torch::Tensor vectors;  // (B, L, D)
};

/// A model that moves backbones from noise to structures (flow matching, Lipman et al. 2023).
class FlowModel {
 public:
  virtual ~FlowModel() = default;
  /// What is computed once, before the first step.
  virtual FlowChains read_chains(const TokenBatch& chains) = 0;
  /// The velocities of N, CA, C and O, (B, L, 4, 3), where they are at `places`, (B, L, 4, 3), at `times`
  /// (B), from 0, noise, to 1, the structure. Lengths are in units of kUnit Å.
  virtual torch::Tensor velocities(const FlowChains& chains, const torch::Tensor& places,
                                   const torch::Tensor& times) = 0;
  /// The Euler steps of a prediction.
  virtual int64_t n_steps() const = 0;

  static constexpr double kUnit = 16;
};

/// A model's interface for such a flow, or null if it has none.
inline FlowModel* flow_of(Model& model) { return dynamic_cast<FlowModel*>(&model); }

}  // namespace zoo

#pragma once
// How well a backbone is predicted, and whether it could be one.

#include <cstdint>
#include <optional>

#include <torch/types.h>

namespace zoo {

/// Of one chain, or, after add(), sums over several.
struct BackboneScores {
  double lddt = 0;      // of CA
  double tm_score = 0;  // residue i laid onto residue i
  double rmsd = 0;      // Å, of CA
  /// Neighbours that are 3.8 ± 0.4 Å apart in the truth, and those of them that are so in the prediction.
  double neighbours = 0, bonded = 0;
  /// All residues. Clashing ones have a CA less than 3 Å from that of a residue beyond the second next.
  double residues = 0, clashing = 0;

  void add(const BackboneScores& other);
};

/// predicted, truth: (L, 3) in Å, the CA atoms. Throws DataError as superposition().
BackboneScores backbone_scores(const torch::Tensor& predicted, const torch::Tensor& truth);

/// Of the L/5 pairs of residues that are nearest in the prediction, among those at least 24 residues apart,
/// the share that touch in the truth (as Rao et al. 2021 count contacts): whose CB, built onto the backbones,
/// are within 8 Å. predicted, truth: (L, 4, 3) in Å; known: (L, 4), of the atoms of the truth. Residues
/// without N, CA or C do not count. Nothing if no pair counts.
std::optional<double> long_contact_precision(const torch::Tensor& predicted, const torch::Tensor& truth,
                                             const torch::Tensor& known);

}  // namespace zoo

#pragma once
// How alike two structures of one protein are. Positions are those of one atom of each of S residues, usually
// CA: (S, 3) in Å, of any floating type. The mask (S), bool, says which residues count; residue i of the
// prediction is residue i of the truth. All are computed in double precision on the CPU.

#include <cstdint>

#include <torch/types.h>

namespace zoo {

/// The rigid motion that lays one set of points onto another.
struct Superposition {
  torch::Tensor rotation;  // (3, 3) double
  torch::Tensor shift;     // (3) double
  double rmsd = 0;         // Å, of the points that count

  /// positions: (..., 3). Returns them moved, in double precision.
  torch::Tensor operator()(const torch::Tensor& positions) const;
};

/// The motion of `moving` that has the least RMSD from `fixed` (Kabsch 1976), by quaternions (Horn 1987); no
/// reflection. Throws DataError if no residue counts or a position that counts is no
/// number or beyond a million Å.
Superposition superposition(const torch::Tensor& moving, const torch::Tensor& fixed,
                            const torch::Tensor& mask);

/// A score and the motion of the prediction that reaches it.
struct TmScore {
  double score = 0;  // 0 to 1
  Superposition motion = {};
};

/// The TM-score (Zhang & Skolnick 2004) of residues that are paired already, which is at most what TM-align
/// says. The best motion is searched as their program does: from fragments of S, S/2, S/4, ... 4 residues, to
/// which near residues are added until nothing changes; of more than 1,000 residues not every fragment.
/// `length`: residues of the true chain, by which the score is divided and which sets the scale d0; those
/// that are not paired count nothing. Throws DataError as superposition(), and if `length` is less than the
/// residues that count.
TmScore tm_score(const torch::Tensor& predicted, const torch::Tensor& truth, const torch::Tensor& mask,
                 int64_t length);

/// The local distance difference test (Mariani et al. 2013).
struct Lddt {
  double score = 0;        // 0 to 1, over all pairs; NaN if there is none
  torch::Tensor residues;  // (S) double, over the pairs of each residue; NaN where there is none
};

/// Of the true distances below 15 Å the shares that the prediction keeps within 0.5, 1, 2 and 4 Å, and their
/// mean. Needs no superposition. Throws DataError as superposition().
Lddt lddt(const torch::Tensor& predicted, const torch::Tensor& truth, const torch::Tensor& mask);

}  // namespace zoo

#pragma once
// Atoms of residues from the frames of the backbone and torsion angles (Jumper et al. 2021, algorithms 24 and
// 25).

#include <torch/types.h>

#include "layers/folding/rigid.h"

namespace zoo {

struct PlacedAtoms {
  Rigid frames;             // (B, L, 8): of the rigid groups (base/residues/residues.h)
  torch::Tensor positions;  // (B, L, 14, 3) in Å; zeros where the residue has no atom
};

/// backbone: (B, L), in Å. angles: (B, L, 7, 2), sine and cosine of omega, phi, psi, chi 1 … chi 4. residues:
/// (B, L) int64. An unknown residue has no atoms, and its frames are zeros, as those of angles that a residue
/// lacks.
PlacedAtoms place_atoms(const Rigid& backbone, const torch::Tensor& angles, const torch::Tensor& residues);

/// Whether residues have the 14 atoms: (…) int64 → (…, 14) float, 0 or 1.
torch::Tensor atoms_of(const torch::Tensor& residues);

/// The atom CB, or where it would be, from N, CA and C: (…, 3) each. Atoms of an ideal residue: AlphaFold's
/// and ESMFold's constants.
torch::Tensor beta_carbons(const torch::Tensor& n, const torch::Tensor& ca, const torch::Tensor& c);

}  // namespace zoo

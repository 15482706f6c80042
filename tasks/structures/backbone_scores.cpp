#include "tasks/structures/backbone_scores.h"

#include "data/structures/structure_comparison.h"

namespace zoo {
namespace {

/// Whether neighbours are as far apart as a bond of peptides holds them: (L - 1) bool.
torch::Tensor bonded(const torch::Tensor& ca) {
  constexpr double usual = 3.8, tolerance = 0.4;
  const auto steps = ca.narrow(0, 1, ca.size(0) - 1) - ca.narrow(0, 0, ca.size(0) - 1);
  return (steps.norm(2, -1) - usual).abs() <= tolerance;
}

/// The residues that are too near to others.
double n_clashing(const torch::Tensor& ca) {
  constexpr double nearest = 3;
  constexpr int64_t beyond = 2;
  const auto near = torch::cdist(ca, ca) < nearest;
  const auto apart = near.triu(beyond + 1);
  return apart.any(0).logical_or(apart.any(1)).sum().item<double>();
}

double count(const torch::Tensor& flags) { return flags.sum().item<double>(); }

}  // namespace

void BackboneScores::add(const BackboneScores& other) {
  lddt += other.lddt;
  tm_score += other.tm_score;
  rmsd += other.rmsd;
  neighbours += other.neighbours;
  bonded += other.bonded;
  residues += other.residues;
  clashing += other.clashing;
}

BackboneScores backbone_scores(const torch::Tensor& predicted, const torch::Tensor& truth) {
  const auto p = predicted.to(torch::kCPU, torch::kDouble), t = truth.to(torch::kCPU, torch::kDouble);
  const auto all = torch::ones({p.size(0)}, torch::kBool);
  const auto true_bonds = bonded(t);
  return {.lddt = lddt(p, t, all).score,
          .tm_score = tm_score(p, t, all, p.size(0)).score,
          .rmsd = superposition(p, t, all).rmsd,
          .neighbours = count(true_bonds),
          .bonded = count(true_bonds.logical_and(bonded(p))),
          .residues = static_cast<double>(p.size(0)),
          .clashing = n_clashing(p)};
}

}  // namespace zoo

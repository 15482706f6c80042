#include "tasks/structures/backbone_scores.h"

#include <algorithm>

#include "data/structures/structure_comparison.h"
#include "layers/folding/side_chains.h"

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

/// The distances of the CB that the backbones (L, 4, 3) hold: (L, L).
torch::Tensor cb_distances(const torch::Tensor& backbones) {
  const auto atoms = backbones.to(torch::kCPU, torch::kDouble).unbind(1);
  const auto cb = beta_carbons(atoms[0], atoms[1], atoms[2]);
  return torch::cdist(cb, cb, 2, /*compute_mode=*/2);  // 2: without a matrix product
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

std::optional<double> long_contact_precision(const torch::Tensor& predicted, const torch::Tensor& truth,
                                             const torch::Tensor& known) {
  constexpr double touching = 8;
  constexpr int64_t least_apart = 24, part = 5;
  const auto framed = known.to(torch::kCPU).narrow(1, 0, 3).gt(0).all(1);
  const auto counted = framed.unsqueeze(0).logical_and(framed.unsqueeze(1)).triu(least_apart);
  const auto said = cb_distances(predicted).masked_select(counted);
  if (said.numel() == 0) return std::nullopt;
  const auto right = cb_distances(truth).masked_select(counted).lt(touching).to(torch::kDouble);
  const auto order = std::get<1>(said.sort(/*stable=*/true, 0, /*descending=*/false));
  const auto n = std::clamp<int64_t>(truth.size(0) / part, 1, said.numel());
  return right.index_select(0, order.narrow(0, 0, n)).mean().item<double>();
}

}  // namespace zoo

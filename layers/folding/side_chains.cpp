#include "layers/folding/side_chains.h"

#include <cmath>

#include "base/residues/residues.h"

namespace zoo {
namespace {

using Vector = std::array<double, 3>;

Vector difference(const Vector& a, const Vector& b) { return {a[0] - b[0], a[1] - b[1], a[2] - b[2]}; }
double dot(const Vector& a, const Vector& b) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }
Vector cross(const Vector& a, const Vector& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
Vector unit(const Vector& a) {
  const double length = std::sqrt(dot(a, a));
  return {a[0] / length, a[1] / length, a[2] / length};
}

/// What all residues of a kind have in common.
struct ResidueTables {
  torch::Tensor rotations = torch::zeros({kResidueTypes, kRigidGroups, 3, 3});  // group to the one before it
  torch::Tensor translations = torch::zeros({kResidueTypes, kRigidGroups, 3});
  torch::Tensor groups = torch::zeros({kResidueTypes, kAtomPlaces}, torch::kInt64);
  torch::Tensor exists = torch::zeros({kResidueTypes, kAtomPlaces});
  torch::Tensor places = torch::zeros({kResidueTypes, kAtomPlaces, 3});

  /// The frame of a group: its origin, its x axis, and a vector in its plane of x and y.
  void set_frame(int64_t residue, int64_t group, const Vector& origin, const Vector& x,
                 const Vector& in_plane) {
    const auto ex = unit(x);
    const double along = dot(in_plane, ex);
    const auto ey =
        unit({in_plane[0] - along * ex[0], in_plane[1] - along * ex[1], in_plane[2] - along * ex[2]});
    const auto ez = cross(ex, ey);
    for (int64_t i = 0; i < 3; ++i) {
      const auto row = static_cast<size_t>(i);
      rotations[residue][group][i] = torch::tensor({ex[row], ey[row], ez[row]}, torch::kDouble);
      translations[residue][group][i] = origin[row];
    }
  }

  ResidueTables() {
    const torch::NoGradGuard no_grad;
    for (int64_t residue = 0; residue < kAminoAcids; ++residue) {
      const auto& acid = amino_acids()[static_cast<size_t>(residue)];
      for (int64_t i = 0; i < kAtomPlaces; ++i) {
        const auto& atom = acid.atoms[static_cast<size_t>(i)];
        if (!atom.exists()) continue;
        groups[residue][i] = atom.group;
        exists[residue][i] = 1;
        places[residue][i] = torch::tensor({atom.place[0], atom.place[1], atom.place[2]}, torch::kDouble);
      }
      const auto place = [&](std::string_view name) { return acid.atom(name).place; };
      const auto n = place("N"), ca = place("CA"), c = place("C");
      rotations[residue].narrow(0, 0, 2).copy_(torch::eye(3));
      set_frame(residue, 2, n, difference(n, ca), {1, 0, 0});
      set_frame(residue, 3, c, difference(c, ca), difference(ca, n));
      for (int64_t chi = 0; chi < kMostChis; ++chi) {
        const auto end_name = acid.axis_ends[static_cast<size_t>(chi)];
        if (end_name.empty()) continue;
        const auto end = place(end_name);
        // From the second angle on the axis begins at the origin of the group before.
        if (chi == 0) {
          set_frame(residue, kFirstChiGroup, end, difference(end, ca), difference(n, ca));
        } else {
          set_frame(residue, kFirstChiGroup + chi, end, end, {-1, 0, 0});
        }
      }
    }
  }
};

const ResidueTables& tables() {
  static const ResidueTables tables;
  return tables;
}

/// Rows of a table for residues, on their device, in the type of `like`.
torch::Tensor rows_of(const torch::Tensor& table, const torch::Tensor& residues, const torch::Tensor& like) {
  return table.to(like.options().requires_grad(false)).index({residues});
}

/// Rotations about the x axis by angles (…, 2): sines and cosines.
torch::Tensor rotations_about_x(const torch::Tensor& angles) {
  const auto sine = angles.select(-1, 0), cosine = angles.select(-1, 1);
  const auto zero = torch::zeros_like(sine), one = torch::ones_like(sine);
  return torch::stack({one, zero, zero, zero, cosine, -sine, zero, sine, cosine}, -1).unflatten(-1, {3, 3});
}

}  // namespace

PlacedAtoms place_atoms(const Rigid& backbone, const torch::Tensor& angles, const torch::Tensor& residues) {
  // The backbone itself does not turn.
  const auto still =
      torch::tensor({0, 1}, angles.options().requires_grad(false)).expand_as(angles.narrow(-2, 0, 1));
  const auto turns = rotations_about_x(torch::cat({still, angles}, -2));
  const Rigid own{.rotation = rows_of(tables().rotations, residues, angles).matmul(turns),
                  .translation = rows_of(tables().translations, residues, angles)};
  std::vector<Rigid> groups;
  for (int64_t group = 0; group < kRigidGroups; ++group) {
    const auto frame = own.select_last(group);
    groups.push_back(group > kFirstChiGroup ? groups.back().compose(frame) : frame);
  }
  std::vector<torch::Tensor> rotations, translations;
  for (const auto& group : groups) {
    rotations.push_back(group.rotation);
    translations.push_back(group.translation);
  }
  const Rigid to_backbone{.rotation = torch::stack(rotations, -3),
                          .translation = torch::stack(translations, -2)};
  auto frames = backbone.unsqueeze_last().compose(to_backbone);
  const auto group_of_atom =
      tables().groups.to(residues.device()).index({residues}).unsqueeze(-1);  // (B, L, 14, 1)
  const auto rotation = frames.rotation.flatten(-2).gather(-2, group_of_atom.expand({-1, -1, -1, 9}));
  const auto translation = frames.translation.gather(-2, group_of_atom.expand({-1, -1, -1, 3}));
  const Rigid of_atoms{.rotation = rotation.unflatten(-1, {3, 3}), .translation = translation};
  const auto positions = of_atoms.apply(rows_of(tables().places, residues, angles)) *
                         rows_of(tables().exists, residues, angles).unsqueeze(-1);
  return {.frames = std::move(frames), .positions = positions};
}

torch::Tensor atoms_of(const torch::Tensor& residues) {
  return tables().exists.to(residues.device()).index({residues});
}

torch::Tensor beta_carbons(const torch::Tensor& n, const torch::Tensor& ca, const torch::Tensor& c) {
  const auto b = ca - n, to_c = c - ca;
  const auto a = torch::cross(b, to_c, -1);
  return -0.58273431 * a + 0.56802827 * b - 0.54067466 * to_c + ca;
}

}  // namespace zoo

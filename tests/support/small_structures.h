#pragma once
// Backbones of made-up proteins, whose letters say how they fold.

#include <array>
#include <cmath>
#include <numbers>
#include <string>

#include <fmt/format.h>

#include "base/residues/residues.h"
#include "data/structures/formats.h"
#include "data/structures/structure.h"
#include "tests/support/temp_dir.h"

namespace zoo::testing {

using Place = std::array<double, 3>;

/// The place of an atom at this distance from c, with this angle at c and this torsion about the bond of b
/// and c, in degrees.
inline Place next_atom(const Place& a, const Place& b, const Place& c, double distance, double angle,
                       double torsion) {
  const auto minus = [](const Place& p, const Place& q) {
    return Place{p[0] - q[0], p[1] - q[1], p[2] - q[2]};
  };
  const auto cross = [](const Place& p, const Place& q) {
    return Place{p[1] * q[2] - p[2] * q[1], p[2] * q[0] - p[0] * q[2], p[0] * q[1] - p[1] * q[0]};
  };
  const auto unit = [](const Place& p) {
    const double length = std::hypot(p[0], p[1], p[2]);
    return Place{p[0] / length, p[1] / length, p[2] / length};
  };
  constexpr double radians = std::numbers::pi / 180;
  const auto along = unit(minus(c, b)), normal = unit(cross(minus(b, a), along)), side = cross(normal, along);
  const double x = -distance * std::cos(angle * radians),
               y = distance * std::sin(angle * radians) * std::cos(torsion * radians),
               z = distance * std::sin(angle * radians) * std::sin(torsion * radians);
  Place d = c;
  for (size_t i = 0; i < 3; ++i) d[i] += x * along[i] + y * side[i] + z * normal[i];
  return d;
}

/// A chain with N, CA, C and O: V is in a strand, G turns, all others are in a helix.
inline Structure backbone_structure(const std::string& letters) {
  struct Angles {
    double phi, psi;
  };
  const auto angles_of = [](char letter) -> Angles {
    return letter == 'V' ? Angles{-120, 130} : letter == 'G' ? Angles{60, 30} : Angles{-57, -47};
  };
  StructureChain chain{.name = "A", .residues = {}};
  Place n{0, 0, 0}, ca{1.458, 0, 0}, c = next_atom({0, 1, 0}, n, ca, 1.525, 111, 0);
  for (size_t i = 0; i < letters.size(); ++i) {
    const double psi = angles_of(letters[i]).psi;
    const std::string name(residue_name(residue_of_letter(letters[i])));
    const auto atom = [](const char* atom_name, const Place& place) {
      return Atom{.name = atom_name, .element = std::string(atom_name, 1), .position = place};
    };
    chain.residues.push_back({.name = name,
                              .parent = name,
                              .number = static_cast<int64_t>(i) + 1,
                              .atoms = {atom("N", n), atom("CA", ca), atom("C", c),
                                        atom("O", next_atom(n, ca, c, 1.231, 120.5, psi + 180))}});
    if (i + 1 == letters.size()) break;
    const auto next_n = next_atom(n, ca, c, 1.329, 116.6, psi);
    const auto next_ca = next_atom(ca, c, next_n, 1.458, 121.7, 180);
    c = next_atom(c, next_n, next_ca, 1.525, 111, angles_of(letters[i + 1]).phi);
    n = next_n;
    ca = next_ca;
  }
  Structure structure;
  structure.models.push_back({.chains = {chain}});
  return structure;
}

/// FOLDER/folds: chains of nine to eighteen residues.
inline void write_structures(const TempDir& dir, const std::string& folder) {
  constexpr int n = 10;
  const std::string letters = "AVGLAVVKAEGVVLAAKVGEA";
  for (int i = 0; i < n; ++i) {
    const auto chain = letters.substr(static_cast<size_t>(i) % 3, 9 + static_cast<size_t>(i));
    dir.write(fmt::format("{}folds/{}.pdb", folder, i), to_pdb(backbone_structure(chain)));
  }
}

}  // namespace zoo::testing

#pragma once
// The twenty amino acids: their letters and names, their atoms, and where these lie in the ideal residue, as
// the supplement of AlphaFold 2 has them (Jumper et al. 2021, tables 2 and 3). Numbers of residues follow
// AlphaFold.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace zoo {

inline constexpr int64_t kAminoAcids = 20;
/// The number of a residue that is none of them: X.
inline constexpr int64_t kUnknownResidue = 20;
inline constexpr int64_t kResidueTypes = 21;
/// The most heavy atoms of a residue within a chain.
inline constexpr int64_t kAtomPlaces = 14;
/// The first of them, the backbone: N, CA, C and O. The second one stands for the residue.
inline constexpr int64_t kBackboneAtoms = 4, kCaPlace = 1;
/// Groups of atoms that move as one: the backbone; those that turn about the torsion angles omega, phi (both
/// have hydrogens alone, and omega's belong to the residue before) and psi; and those of the angles chi 1 to
/// chi 4.
inline constexpr int64_t kRigidGroups = 8;
inline constexpr int64_t kFirstChiGroup = 4, kMostChis = 4;
inline constexpr int64_t kTorsionAngles = kRigidGroups - 1;

/// An atom and its place in Å in the frame of its rigid group.
struct IdealAtom {
  std::string_view name = {};  // "CA"; empty: the residue has no atom here
  int64_t group = 0;
  std::array<double, 3> place = {};

  bool exists() const { return !name.empty(); }
};

struct AminoAcid {
  char letter;
  std::string_view name;  // "ALA"
  /// For each chi angle the atom in which its axis of rotation ends; empty: the residue has no such angle.
  std::array<std::string_view, kMostChis> axis_ends;
  /// N, CA, C and O come first, in this order.
  std::array<IdealAtom, kAtomPlaces> atoms;

  /// The atom of that name, which must exist.
  const IdealAtom& atom(std::string_view atom_name) const;
};

/// In the order of their numbers.
const std::array<AminoAcid, kAminoAcids>& amino_acids();

/// "ALA"; "UNK" for kUnknownResidue.
std::string_view residue_name(int64_t residue);
/// 'A'; 'X' for kUnknownResidue.
char residue_letter(int64_t residue);
/// The number of a capital letter; kUnknownResidue for other letters.
int64_t residue_of_letter(char letter);
/// The number of a name of three letters; nothing for names of others.
std::optional<int64_t> residue_of_name(std::string_view name);

/// The heavy atoms that residues have, in the order in which files of predicted structures list them.
inline constexpr auto kAtomNames = std::to_array<std::string_view>(
    {"N",   "CA",  "C",   "CB",  "O",   "CG", "CG1", "CG2", "OG",  "OG1", "SG", "CD",  "CD1",
     "CD2", "ND1", "ND2", "OD1", "OD2", "SD", "CE",  "CE1", "CE2", "CE3", "NE", "NE1", "NE2",
     "OE1", "OE2", "CH2", "NH1", "NH2", "OH", "CZ",  "CZ2", "CZ3", "NZ",  "OXT"});

/// The place of a name in kAtomNames; nothing for other atoms.
std::optional<int64_t> atom_number(std::string_view name);

}  // namespace zoo

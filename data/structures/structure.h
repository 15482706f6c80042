#pragma once
// Structures of proteins: atoms of residues of chains, as files of the Protein Data Bank have them.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

struct Atom {
  std::string name;                     // "CA"
  std::string element;                  // "C"
  std::array<double, 3> position = {};  // Å
  double occupancy = 1;
  double b_factor = 0;  // in predicted structures how sure the model is, pLDDT from 0 to 100
};

struct StructureResidue {
  std::string name;      // "ALA"; "MSE" for an altered one
  std::string parent;    // the amino acid that it was made from, "MET"; empty: it is none, such as water
  int64_t number = 0;    // of the file's author: there may be gaps
  char insertion = ' ';  // 52, 52A, 52B: the letter
  std::vector<Atom> atoms;

  /// Null if the residue has no such atom.
  const Atom* atom(std::string_view atom_name) const;
};

struct StructureChain {
  std::string name;
  std::vector<StructureResidue> residues;
  /// The letters of the whole chain, also of residues without atoms; empty: the file does not say.
  std::string sequence = {};
};

struct StructureModel {
  std::vector<StructureChain> chains;
};

struct Structure {
  std::string name;                    // "1ABC", or empty
  std::vector<StructureModel> models;  // at least one
};

/// The letters of a chain: the whole one if the file says it, or of the residues that have atoms. Empty: it
/// is no protein.
std::string letters_of(const StructureChain& chain);

/// The amino acid that a residue was made from: its own name, or for the usual altered ones that of their
/// parent, such as MET for MSE. Empty for others.
std::string_view parent_of(std::string_view residue_name);

/// The most that is read: bytes without compression, atoms in all and of a residue.
inline constexpr int64_t kMostStructureBytes = int64_t{512} << 20, kMostAtoms = 4'000'000,
                         kMostAtomsOfResidue = 1'000;

/// Whether the name says that a file has a structure: .pdb, .ent, .cif or .mmcif, also with .gz.
bool is_structure_file(const std::filesystem::path& path);

/// Reads PDB or mmCIF, also compressed with gzip. Of atoms at several places the one that is there most often
/// is taken, the first of equals. Throws DataError for a file that cannot be read, with the line, or that is
/// above the limits.
Structure read_structure(const std::filesystem::path& path);

/// The same for a text. `name` stands for its path in messages.
Structure parse_structure(std::string_view text, std::string_view name);

}  // namespace zoo

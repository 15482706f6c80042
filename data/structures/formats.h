#pragma once
// The two forms of files of structures. The readers are our own, about 300 lines: the library gemmi (Debian
// has version 0.5.7, headers of 1.8 MB) has no limits, repairs what is wrong without a word, and would be
// needed for this alone.

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "data/structures/structure.h"

namespace zoo {

/// PDB (format 3.3): columns. Records that say nothing about atoms, models, altered residues or sequences are
/// skipped.
Structure parse_pdb(std::string_view text, std::string_view name);
/// The names of chains have one letter there, and numbers few digits. Throws DataError for what does not fit.
std::string to_pdb(const Structure& structure);

/// mmCIF (CIF 1.1): the first block. Chains and residues have the names and numbers of the author
/// (auth_asym_id, auth_seq_id).
Structure parse_mmcif(std::string_view text, std::string_view name);
std::string to_mmcif(const Structure& structure);

/// Puts atoms that come one by one where they belong.
class StructureBuilder {
 public:
  /// `name` stands for the file in messages.
  explicit StructureBuilder(std::string_view name) : name_(name) {}

  struct Place {
    std::string_view chain, residue;
    int64_t number = 0;
    char insertion = ' ';
    bool is_altered = false;  // the atom has several places, or the residue several names
  };
  /// Begins another model.
  void begin_model();
  /// Throws DataError for more than kMostAtoms, or kMostAtomsOfResidue in one.
  void add(const Place& place, Atom atom);
  StructureChain& chain(std::string_view chain_name);
  Structure& structure() { return structure_; }
  /// The structure without models that have no atoms. Throws DataError if there are none at all.
  Structure finish();

 private:
  std::string_view name_;
  Structure structure_;
  std::map<std::string, size_t, std::less<>> places_;  // of the chains of the last model
  int64_t n_atoms_ = 0;
};

/// A number, which must be finite. Throws DataError, which begins with `place`.
double parse_coordinate(std::string_view text, const std::string& place);
int64_t parse_residue_number(std::string_view text, const std::string& place);

}  // namespace zoo

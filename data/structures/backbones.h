#pragma once
// Backbones of protein chains, which models of structures learn from.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "data/data_config.h"
#include "data/rows_by_split.h"
#include "data/structures/structure.h"

namespace zoo {

/// The L residues of a chain that have a CA atom.
struct Backbone {
  std::string name;         // of the file, and of the chain if the file has several
  torch::Tensor residues;   // (L) int64: their kinds (base/residues/residues.h)
  torch::Tensor positions;  // (L, 4, 3) float, Å: N, CA, C and O; zeros where the file has no atom
  torch::Tensor known;      // (L, 4) bool: whether the file has the atom

  int64_t length() const { return residues.size(0); }
};

/// A chain of fewer residues is not learnt from: it has no fold.
inline constexpr int64_t kFewestFoldedResidues = 3;

/// The chains of a structure's first model; with `chain` only the one of that name. Chains of fewer than
/// kFewestFoldedResidues residues with CA are left out. Throws DataError, which begins with `name`, if none
/// is left.
std::vector<Backbone> backbones_of(const Structure& structure, const std::string& name,
                                   std::string_view chain = {});

/// The chains of a split, in order. data.train, data.valid and data.test name folders, whose files and those
/// of the folders in them are read in the order of their paths; single files of structures; and tables
/// (data/tables.h) with the column `file`, a path in the folder of the table or below it, and, if it has one,
/// `chain`, without which all chains of the file are taken. If the configuration names no validation files,
/// the share valid_fraction of the training chains, drawn at random once and for all, is for validation
/// instead. Throws DataError for what cannot be read, and for a split without chains.
RowsBySplit<std::vector<Backbone>> backbones_by_split(const DataConfig& config);

/// SHA-256 of the content of the training and validation files: of the chains as they are read.
std::string hash_of_backbones(const std::vector<Backbone>& chains);

}  // namespace zoo

#pragma once
// Structures by the CA atoms of their residues, and two structures of one protein laid onto each other.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <torch/types.h>

#include "data/structures/structure.h"

namespace zoo {

/// The S residues of a structure's first model that are of a protein and have a CA atom, chain after chain.
struct CaTrace {
  std::vector<std::string> chains;   // names of the chains that have such residues
  std::vector<int64_t> chain_of;     // S: the place of its name in `chains`
  std::string letters;               // S
  std::vector<std::string> numbers;  // S: of the file's author, "52A"
  torch::Tensor positions;           // (S, 3) double, Å
  std::vector<double> b_factors;     // S, of the CA; pLDDT of predicted structures
};

/// Throws DataError, which begins with `name`, if there is no such residue.
CaTrace ca_trace(const Structure& structure, std::string_view name);

/// Places of letters that belong together, in order.
using PairedPlaces = std::vector<std::pair<int64_t, int64_t>>;

/// The alignment of two sequences with the most letters in common: gaps have affine costs (Gotoh 1982), those
/// at the ends none. Time and memory grow with the product of the lengths. Throws DataError if it is above
/// kMostAlignedCells.
PairedPlaces aligned_letters(std::string_view first, std::string_view second);
inline constexpr int64_t kMostAlignedCells = 64'000'000;

/// How alike a structure is to another one, which counts as the truth.
struct SuperposedTraces {
  CaTrace truth;            // moved onto the other structure, with the motion of the best TM-score
  PairedPlaces pairs = {};  // residues of the structure and of the truth
  int64_t length = 0;  // residues of the true chains that have a partner, which the TM-score is divided by
  double rmsd = 0;     // Å, after the motion that makes it least
  double tm_score = 0, lddt = 0;
};

/// Pairs chains by their sequences: a chain with that of the same name if these are alike, else with the one
/// that has most in common, and at least 30 % of the shorter one. Throws DataError if no two are alike, or as
/// aligned_letters(). The names stand for both structures in messages.
SuperposedTraces superposed(const CaTrace& trace, std::string_view name, const CaTrace& truth,
                            std::string_view truth_name);

/// {"residues": of the true chains, "paired", "tm_score", "lddt", "rmsd"}.
nlohmann::ordered_json to_json(const SuperposedTraces& traces);
/// Paired residues, TM-score, lDDT and RMSD, each behind a tab.
std::string to_columns(const SuperposedTraces& traces);

}  // namespace zoo

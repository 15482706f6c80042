#pragma once
// A page that shows the structure of a protein, also beside another one: one HTML file that needs neither a
// network nor a library.

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>
#include <torch/types.h>

#include "data/structures/ca_trace.h"

namespace zoo {

/// Whether the B factors are a model's confidence.
enum class StructureOrigin { predicted, file };

struct ShownStructure {
  std::string title;
  CaTrace trace;
  StructureOrigin origin = StructureOrigin::file;
  // Of predictions: how sure the model is of all of it (0 to 1, pTM), and the predicted aligned errors (S, S)
  // in Å of residue j where residue i is aligned. Undefined: not known.
  std::optional<double> predicted_tm_score = std::nullopt;
  torch::Tensor aligned_error = {};
  // Another structure of the protein, laid onto this one, and its name.
  std::optional<SuperposedTraces> truth = std::nullopt;
  std::string truth_title = {};
};

/// The longest structure of a page, in residues.
inline constexpr int64_t kMostShownResidues = 20'000;

/// A structure for pages and other programs, which find it in the element with id "data" of a page:
///   title, predicted: whether B factors are pLDDT, tm_score (predicted) or null
///   trace: {"chains": names, "chain": of each residue its place there, "letters": text, "numbers": texts,
///           "places": 3·S numbers in Å, "b": S numbers}
///   aligned_error: null, or {"size": n, "rows": base64 of n·n bytes, a quarter of an Å each}; of more than
///                  512 residues means over equal blocks of them
///   truth: null, or {"title", "trace", "pairs": lists of two residues, "length",
///          "rmsd", "tm_score", "lddt"}
/// Throws DataError for a structure with more residues.
nlohmann::ordered_json structure_data(const ShownStructure& structure);

/// The page with this data. Throws likewise.
std::string structure_page(const ShownStructure& structure);

}  // namespace zoo

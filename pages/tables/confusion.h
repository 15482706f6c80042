#pragma once
// Confusion matrices in results.json: how often a run took each class for each other.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pages/json.h"

namespace zoo {

/// C classes.
struct ConfusionMatrix {
  std::vector<std::string> labels;           // C
  std::vector<std::vector<int64_t>> counts;  // C × C: rows = the right class, columns = the predicted one
};

/// `confusion` of a run in results.json; absent where there is none, or where it is no matrix of counts for
/// its labels.
std::optional<ConfusionMatrix> confusion_of(const Json& run);

/// The matrix of {"labels", "counts"}, as above.
std::optional<ConfusionMatrix> confusion_matrix(const Json& json);

/// sum ← sum + more. Nothing is added where the labels differ.
void add_confusion(std::optional<ConfusionMatrix>& sum, const std::optional<ConfusionMatrix>& more);

/// A class that was taken for another.
struct Mistake {
  std::string right, predicted;
  int64_t count = 0;
  double share = 0;  // of the examples of the right class
};

/// The `most` commonest mistakes, the commonest first; ties in the order of the labels.
std::vector<Mistake> commonest_mistakes(const ConfusionMatrix& confusion, size_t most);

}  // namespace zoo

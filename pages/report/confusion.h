#pragma once
// Confusion matrices in results.json: how often a run took each class for each other.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pages/json.h"

namespace zoo {

/// C classes.
struct Confusion {
  std::vector<std::string> labels;           // C
  std::vector<std::vector<int64_t>> counts;  // C × C: rows = the right class, columns = the predicted one
};

/// `confusion` of a run in results.json; absent where there is none, or where it is no matrix of counts for
/// its labels.
std::optional<Confusion> confusion_of(const Json& run);

/// sum ← sum + more, both {"labels", "counts"} or null. Nothing is added where the labels differ.
void add_confusion(Json& sum, const Json& more);

/// A class that was taken for another.
struct Mistake {
  std::string right, predicted;
  int64_t count = 0;
  double share = 0;  // of the examples of the right class
};

/// The `most` commonest mistakes, the commonest first; ties in the order of the labels.
std::vector<Mistake> commonest_mistakes(const Confusion& confusion, size_t most);

}  // namespace zoo

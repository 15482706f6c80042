#pragma once
// A page of texts with a label for each word or character: a protein with its secondary structure, for
// example.

#include <string>
#include <vector>

#include "tasks/prediction.h"

namespace zoo {

/// A text and what a model says of each of its words or characters.
struct LabelledText {
  Prediction prediction;  // with tokens
  /// The right labels, one for each token, "-" where none is known; empty if none are known.
  std::vector<std::string> truth = {};
};

/// One HTML file that needs neither a network nor a library. The element with id "data" holds JSON for other
/// programs:
///   title: text
///   texts: list of {"tokens", "labels": lists of texts, "probabilities": percents of the labels, rounded,
///          "truth": list of texts, or null}
std::string labels_page(const std::string& title, const std::vector<LabelledText>& texts);

}  // namespace zoo

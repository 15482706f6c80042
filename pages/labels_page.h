#pragma once
// A page of texts with what a model says of each: of its words or characters (a protein with its secondary
// structure), or of the whole text.

#include <string>
#include <vector>

#include "tasks/prediction.h"

namespace zoo {

/// A text and what a model says of it.
struct LabelledText {
  Prediction prediction;  // with tokens, labels or a score
  /// The right labels, one for each token, "-" where none is known; of a whole text its labels, or its
  /// number. Empty if none are known.
  std::vector<std::string> truth = {};
};

/// One HTML file that needs neither a network nor a library. The element with id "data" holds JSON for other
/// programs:
///   title: text
///   texts: list of {"tokens", "labels": lists of texts (several labels of a token are sorted and joined by
///   ", ", "O" is
///          none), "probabilities": percents of the labels, rounded,
///          "truth": list of texts, or null}, or of whole texts {"text", "answers": list of {"label",
///          "probability"}, the likeliest first, or "score": number, "truth"}
std::string labels_page(const std::string& title, const std::vector<LabelledText>& texts);

}  // namespace zoo

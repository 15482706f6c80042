#pragma once
// What is right for an input of a classifier, and how tables write it.

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// What is right for an input of a task that classifies, and what its model says.
///   single_label  one of the classes; their probabilities are a softmax and sum to 1
///   multi_label   any number of the labels; the probability of each is a sigmoid of its own. A model with
///                 one label says a score from 0 to 1
///   regression    a number, or several; the model says it as it is
enum class Problem { single_label, multi_label, regression };
constexpr auto config_names(Problem) {
  return std::to_array<std::string_view>({"single_label", "multi_label", "regression"});
}

/// The labels of a field: a list in JSON of texts and numbers, or what stands between separators. Blanks
/// around a label do not count; a label that is empty or comes again is left out. Throws DataError for a
/// field in brackets that is no such list, and for a list of zeros and ones in which one comes again.
std::vector<std::string> labels_in(std::string_view field, std::string_view separator);

/// Throws DataError if all fields are lists in JSON of equally many numbers, all of them 0 or 1, as other
/// programs mark which of their labels a row has: read as names, they would be the labels 0 and 1.
void refuse_marks(const std::vector<std::string>& fields);

/// The field as a finite number; nothing if it is none.
std::optional<double> find_number(std::string_view field);
/// Throws DataError unless the field is a number of at most 1e15, whose square a model can compute with.
double number_of(std::string_view field);

/// Throws DataError unless the field can be read as the problem needs it; an empty one is no label.
void check_labels(std::string_view field, Problem problem, std::string_view separator);

}  // namespace zoo

#pragma once
// What a trained model says about single inputs.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "data/images/box.h"

namespace zoo {

/// What one input of Task::predict() is.
enum class PredictionInput {
  nothing,  // the task does not predict
  text,
  image_file,  // the path of a PNG or JPEG file
};

/// A class and its probability.
struct LabelProbability {
  std::string label;
  double probability = 0;
};

/// What a model predicts for one input.
struct Prediction {
  std::string input;  // as given
  /// Every class, the likeliest first. The probabilities sum to 1. Empty if the input has nothing to
  /// classify, such as a text without tokens.
  std::vector<LabelProbability> labels = {};
  /// Whether the model read only the beginning of the input, because the input is longer than in training.
  bool cut = false;
  /// The objects that a task that detects has found, all that the model suggests, the best score first.
  /// Absent for other tasks.
  std::optional<std::vector<LabelledBox>> objects = std::nullopt;
};

struct PredictOptions {
  std::function<void(int64_t done, int64_t all)> on_progress = nullptr;  // counts inputs
};

/// For functions that show the likeliest labels or the best objects: show all.
inline constexpr int64_t kEveryLabel = std::numeric_limits<int64_t>::max();

/// Removes the objects of each prediction whose score is below `min_score`, and those after the first `top`.
void keep_best_objects(std::vector<Prediction>& predictions, double min_score, int64_t top = kEveryLabel);

/// One document, as `zoo predict --json` prints it: {"results": [{"input": text, "labels": [{"label": text,
/// "probability": number}]}]}, with at most `top` labels for each input. A prediction with objects is
/// {"input": text, "objects": [{"label": text, "score": number, "box": [x, y, width, height]}]} instead, in
/// pixels of the picture as it is in its file, rounded to two digits after the point.
std::string to_json(const std::vector<Prediction>& predictions, int64_t top = kEveryLabel);

/// One line for each input: label, probability, label, probability, …, separated by tabs, with at most `top`
/// labels. The line is empty if there are no labels. A prediction with objects has a line for each of them
/// instead: input, label, score, x, y, width, height. Control characters in labels and inputs are escaped.
std::string to_text(const std::vector<Prediction>& predictions, int64_t top = kEveryLabel);

}  // namespace zoo

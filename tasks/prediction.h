#pragma once
// What a trained model says about single inputs.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "data/images/box.h"
#include "data/labels.h"
#include "layers/weights/weights.h"
#include "tasks/spoken_text.h"

namespace zoo {

/// What one input of Task::predict() is.
enum class PredictionInput {
  nothing,  // the task does not predict
  text,
  image_file,  // the path of a PNG, JPEG or WebP file
  audio_file,  // the path of a recording
};

/// What Task::predict() says of an input, with the alternative of PredictedAnswer that it gives.
enum class PredictionKind {
  labels,      // of the whole input: PredictedLabels or PredictedScore
  tokens,      // of each word or character of a text: PredictedTokens
  objects,     // in a picture: PredictedObjects
  transcript,  // of a recording: Transcript
  answers,     // to sources, which generation writes and evaluations include: there is no prediction
};

/// A class or a label and its probability; of a regression, a number and its value.
struct LabelProbability {
  std::string label;
  double probability = 0;
};

/// A word or a character of a text with its likeliest class, or with every label if it may have several, the
/// likeliest first. It has none if the tokenizer removes it, such as a word that is U+200B alone.
struct LabelledToken {
  std::string token;
  std::vector<LabelProbability> labels = {};

  bool has_class() const { return !labels.empty(); }
};

/// Every class, the likeliest first, with probabilities that sum to 1 for Problem::single_label; the labels
/// that an input may have, the likeliest first; or the numbers of a regression that has several, in their
/// order. Empty if the input has nothing to classify, such as a text without tokens.
struct PredictedLabels {
  std::vector<LabelProbability> labels = {};
  Problem problem = Problem::single_label;
};

/// What a model with one output says, unless its problem is single_label.
struct PredictedScore {
  double value = 0;  // NaN if there is nothing to classify
};

/// The words or characters of a text that the model read, in order.
struct PredictedTokens {
  std::vector<LabelledToken> tokens = {};
  Problem problem = Problem::single_label;
};

/// All objects that a model suggests, the best score first.
struct PredictedObjects {
  std::vector<LabelledBox> objects = {};
};

using PredictedAnswer =
    std::variant<PredictedLabels, PredictedScore, PredictedTokens, PredictedObjects, Transcript>;

/// What a model predicts for one input.
struct Prediction {
  std::string input;  // as given
  PredictedAnswer answer = {};
  /// Whether the model read only the beginning of the input, because the input is longer than in training.
  bool cut = false;
  /// Whether parts of a picture were transparent, which were put on white.
  bool on_white = false;

  /// The answer of a model of which it is known. Throws std::bad_variant_access if the answer is another.
  const std::vector<LabelProbability>& labels() const { return std::get<PredictedLabels>(answer).labels; }
  const std::vector<LabelledToken>& tokens() const { return std::get<PredictedTokens>(answer).tokens; }
  const std::vector<LabelledBox>& objects() const { return std::get<PredictedObjects>(answer).objects; }
  const std::string& transcript() const { return std::get<Transcript>(answer).text; }
};

/// Whether an input of Task::predict() may be two texts.
enum class PairUse {
  none,      // it is one text
  possible,  // one or two: a classifier from the Hub, which does not say what it was trained on
  always     // two
};

/// Texts and, for those that are pairs, their second texts: as many, or none at all if there are no pairs.
struct TextInputs {
  std::vector<std::string> texts;
  std::vector<std::optional<std::string>> seconds = {};
};
/// A tab in an input divides the texts of a pair where `use` says so. Throws DataError for an input with
/// several tabs, and where each must be a pair, for one without a tab.
TextInputs split_at_tabs(std::vector<std::string> inputs, PairUse use);

struct PredictOptions {
  /// Of a task that compares pictures with texts: the texts, one for each label. Without them it says
  /// nothing.
  std::vector<std::string> labels = {};
  /// What is compared in place of a label: this text with the label at each "{}" ("a photo of a {}.").
  /// Default: that of the task.
  std::optional<std::string> label_template = {};
  SpeechOptions speech = {};  // of a task that reads recordings
  /// Of a task with pairs: the second text of each input that is a pair; empty: no input is.
  std::vector<std::optional<std::string>> seconds = {};
  std::function<void(int64_t done, int64_t all)> on_progress = nullptr;  // counts inputs
  /// Called with the reason for each image or recording that cannot be read, which then has no prediction. By
  /// default predict() throws DataError.
  std::function<void(const std::string& problem)> on_unreadable = nullptr;
};

/// For functions that show the likeliest labels or the best objects: show all.
inline constexpr int64_t kEveryLabel = std::numeric_limits<int64_t>::max();

/// Objects that were left out because of their scores.
struct UnlikelyObjects {
  int64_t n = 0;
  double best_score = 0;
  std::string label = {}, input = {};  // of the object with the best score
};
/// Removes the objects of each prediction whose score is below `min_score`, and those after the first `top`.
/// Returns the former.
UnlikelyObjects keep_best_objects(std::vector<Prediction>& predictions, double min_score,
                                  int64_t top = kEveryLabel);

/// One document, as `zoo predict --json` prints it: {"results": [{"input": text, "labels": [{"label": text,
/// "probability": number}]}]}, with at most `top` labels for each input. A prediction with a score is
/// {"input": text, "score": number}; the numbers of a regression with several have "score" in place of
/// "probability". The input of a pair is both texts with a tab between them. A prediction with objects is
/// {"input": text, "objects": [{"label": text, "score": number, "box": [x, y, width, height]}]} instead, in
/// pixels of the picture as it is in its file, rounded to two digits after the point. A prediction with
/// tokens is {"input": text, "tokens": [{"token": text, "label": text, "probability": number}]}, both null
/// for a word without a class, where a token that may have several labels has "labels": [{"label",
/// "probability"}], at most `top`, and one of a recording is {"input": text, "text": text}, with "language":
/// text where the model was asked for it, and "segments": [{"start": seconds, "end": seconds, "text": text}]
/// where times were asked for. Beside "results" stands "weights", how they are stored, if it is given.
std::string to_json(const std::vector<Prediction>& predictions, int64_t top = kEveryLabel,
                    std::optional<WeightFormat> weights = {});

/// What a prediction of labels or a score says, in a few words: the likeliest class; the labels with a
/// probability of half or more; the number.
std::string in_words(const Prediction& prediction);
/// The same for some labels.
std::string in_words(const std::vector<LabelProbability>& labels, Problem problem);

/// Whether a line for a class begins with its input.
enum class InputColumn { none, first };

/// One line for each input: label, probability, label, probability, …, separated by tabs, with at most `top`
/// labels, after the input where it is wanted. The line is the score of a prediction that has one. It is
/// empty if there are no labels. A prediction with objects has a line for each of them instead: input, label,
/// score, x, y, width, height. A prediction with tokens has a line for each of them, token, label,
/// probability, …, and then an empty line. A prediction of a recording is its text. Control characters in
/// labels, inputs and texts are escaped.
std::string to_text(const std::vector<Prediction>& predictions, int64_t top = kEveryLabel,
                    InputColumn column = InputColumn::none);

}  // namespace zoo

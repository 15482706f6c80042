#pragma once
// One input of a trained model and what is asked of it: which output is right at which place.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/run.h"
#include "data/batch.h"

namespace zoo {

/// M places at which the model predicts: every position of a model that predicts tokens, one place of a model
/// that predicts once.
struct Question {
  Batch batch;  // one row without padding, on the model's device; its features are those of the places
  std::string input = {};   // as given
  std::string target = {};  // of a model that answers: what it writes; else empty
  /// The names of what the model reads: tokens, or the places of a picture; of a model with two sides the
  /// encoder's and the decoder's.
  std::vector<std::string> source_tokens = {}, target_tokens = {};
  /// M: what stands where an output is predicted, such as the token before it.
  std::vector<std::string> places = {};
  /// M: the right output; -1: the input does not say it.
  std::vector<int64_t> targets = {};
  /// The place that people ask about first: the last one, or the first masked token.
  int64_t place = 0;
  /// The part of a picture that the model sees, in pixels of the picture. Texts have none.
  std::optional<Box> shown = {};
  /// The name of an output.
  std::function<std::string(int64_t)> label = {};
};

struct QuestionRequest {
  std::optional<std::string> text = {};    // or an image
  std::optional<std::string> image = {};   // a file
  std::optional<std::string> target = {};  // of a model that answers; default: the model's greedy output
};

/// Reads the input. Where the input does not say what is right, as after its last token, the target is -1.
/// Throws UsageError for a task without one answer at each place (detection, speech), and errors as
/// read_text() and Task::read_inputs().
Question ask(const Run& run, const QuestionRequest& request);

/// The output of this name: a token, whose text has to be one token, or a class. Throws UsageError; `option`
/// is what the message calls the name.
int64_t output_named(const Run& run, const std::string& name, std::string_view option);

/// Sets targets that are -1 to the likeliest outputs of the model, (M, V) `logits`.
void fill_targets(Question& question, const torch::Tensor& logits);

/// The question as a batch with targets, on the CPU: where the input says what is right, and else the asked
/// place with `answer`, or without one with the model's own first choice. A hidden token is no target of
/// itself, so a model that finds hidden tokens is asked for those alone. Throws UsageError if such a text
/// hides none, and for a model of numbers or of several labels.
Batch batch_of_question(const Run& run, const Question& question, std::optional<int64_t> answer);

/// Throws UsageError for a model whose outputs are no alternatives with probabilities: numbers, several
/// labels, objects, vectors, or what is said in a recording.
void require_alternatives(const Run& run);

/// Throws UsageError unless the question has this place.
void require_place(const Question& question, int64_t place, std::string_view option);

}  // namespace zoo

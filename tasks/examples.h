#pragma once
// The scores of single examples: a document, a pair, a picture, a recording.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "data/batch_source.h"
#include "data/splits.h"
#include "tasks/evaluation.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// Which of a few texts a model has chosen (tasks/text/choice_scores.h).
struct ChosenAnswer {
  int64_t answer = 0;                        // the number of the right one
  int64_t chosen = 0, chosen_by_length = 0;  // by log-likelihood, and by log-likelihood per character
  std::vector<double> log_likelihoods = {};  // of each, in nats
};

/// The loss of a part of an example's bytes (tasks/text/text_slices.h).
struct SliceSum {
  double nats = 0, bytes = 0;
};

/// What a model says of one example of the data.
struct ExampleScore {
  std::string input;                         // for people
  std::optional<std::string> document = {};  // that it is a part of, if it is known to be of one
  std::optional<std::string> target = {}, prediction = {};  // what is right, and what the model says
  double loss = 0;                                          // summed over its targets, as Score::nats
  int64_t targets = 0;                                      // predictions that the loss is summed over
  int64_t bytes = 0;                                        // of the text that is predicted; 0: none is
  std::optional<bool> right = {};                           // whether the whole answer is right
  int64_t n_answers = 0, n_right = 0;                       // that an accuracy counts
  std::optional<ChosenAnswer> choice = {};                  // of a question with choices
  std::vector<SliceSum> slices = {};                        // of a text, one for each of kTextSlices
};

/// Lines of JSON, one for each example: {"input": text, "document": text, "target": text, "prediction": text,
/// "loss": number, "targets": number, "bytes": number, "right": true or false, "n_right": number,
/// "n_answers": number}, without the members that the task lacks; the last two where there are several
/// answers. Questions with choices have {"answer": number, "chosen": number, "chosen_norm": number,
/// "log_likelihoods": numbers}, too.
std::string to_json_lines(const std::vector<ExampleScore>& examples);

/// Sets the documents of examples that are rows of tables, one for each row: the entries of
/// data.document_column, if there is one. Throws DataError for files that are no tables, for tables without
/// the column, and for another number of rows.
void name_documents(const DataConfig& config, Split split, std::vector<ExampleScore>& examples);

/// The losses of single targets, in the order of the data.
struct TargetLosses {
  std::vector<double> losses;
  std::vector<int64_t> rows;  // the row of the data that each target belongs to
  int64_t n_rows = 0;         // so far

  /// Adds a batch whose targets have these losses: (N) float.
  void add(const Batch& batch, const torch::Tensor& batch_losses);
};

/// One example for each row.
std::vector<ExampleScore> examples_by_row(const TargetLosses& each);

/// How people call a class.
using ClassName = std::function<std::string(int64_t number)>;
ClassName named_by(const std::vector<std::string>& labels);

/// Collects examples during an evaluation whose options want them; else it does nothing.
class ExampleRecorder {
 public:
  explicit ExampleRecorder(const EvaluationOptions& options);

  bool is_wanted() const { return examples_ != nullptr; }
  /// For score(): the same options, which fill losses().
  const EvaluationOptions& options() const { return options_; }
  const TargetLosses& losses() const { return losses_; }
  /// Notes which classes (N) a model predicts, and which are right, by their names.
  void add_classes(const torch::Tensor& predicted, const torch::Tensor& actual, const ClassName& name);
  /// Notes what a model says of a target, and what is right.
  void add_words(std::string predicted, std::string actual);
  /// Notes which answers are right: (N) bool. add_classes() does it, too.
  void add_answers(const torch::Tensor& right);
  /// Sets the examples: one for each row, with what was noted.
  void finish_rows();
  /// Sets the examples.
  void finish(std::vector<ExampleScore> examples);
  /// The examples that are set.
  std::vector<ExampleScore>& examples() { return *examples_; }

 private:
  std::vector<ExampleScore>* examples_;
  TargetLosses losses_;
  EvaluationOptions options_;
  // One value for each target, in order: whether the answer is right, and both in words.
  std::vector<int64_t> right_;
  std::vector<std::string> predicted_, actual_;
};

/// Sets the inputs of examples that are rows, if they are wanted: what the rows' tokens decode to.
void name_inputs(ExampleRecorder& recorder, BatchSource& source, const Tokenizer& tokenizer);

}  // namespace zoo

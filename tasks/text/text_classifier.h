#pragma once
// What classifiers of texts share, whatever they answer with. tasks/text/text_classification.h has their
// keys.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "tasks/problem.h"
#include "tasks/task.h"
#include "text/text_rows.h"
#include "tokenizers/token_store.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

class TextClassifier : public Task {
 public:
  TextClassifier(const Experiment& experiment, Vocabulary vocabulary, RowsBySplit<LabelledTexts> rows)
      : Task(experiment, std::move(vocabulary)), rows_(std::move(rows)) {}

  std::vector<Prediction> predict(Model& model, const std::vector<std::string>& inputs,
                                  const PredictOptions& options) override;
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override;

 protected:
  const std::vector<std::string>& labels() const { return vocabulary().labels; }
  Problem problem() const { return problem_; }

  /// The rows of a split, which are not kept.
  LabelledTexts take_rows(Split split) { return rows_.take(split); }
  /// Sets the inputs of EvaluationOptions::examples, if they are wanted.
  void name_inputs(Split split, const EvaluationOptions& options);
  /// What is right for each row, as targets_of().
  torch::Tensor targets(const LabelledTexts& rows) const;

  /// Token ids without special tokens.
  struct EncodedText {
    TokenIds text;
    std::optional<TokenIds> second;  // of a pair
  };

  /// What turns texts into outputs.
  struct Scorer {
    /// (B, C) float on the CPU, for activated(). The texts are all pairs or all single. The scorer cuts texts
    /// that are too long.
    std::function<torch::Tensor(const std::vector<EncodedText>& texts)> scores;
    int64_t most_rows;  // texts in one call
  };
  virtual Scorer scorer(Model& model) const = 0;
  /// The number of special tokens around a text, or around a pair.
  virtual int64_t n_special_tokens(const EncodedText& text) const = 0;

  EncodedText encode(const std::string& text, const std::optional<std::string>& second) const;
  static std::vector<TokenIds> first_texts(const std::vector<EncodedText>& encoded);

  /// (N, C) float on the CPU: the outputs for all texts, computed with batches of similar lengths.
  torch::Tensor class_scores(Model& model, const std::vector<EncodedText>& texts,
                             const PredictOptions& options = {}) const;

  /// Says how many texts, or pairs if there are any, are cut.
  void note_length(const TokenStore& texts, const TokenStore& seconds, Split split);

 private:
  int64_t length_limit() const { return experiment().data.sequence_length; }
  int64_t length_with_specials(const EncodedText& text) const;
  TokenIds encode_text(const std::string& text) const;

  const Problem problem_ = problem_of(experiment());
  RowsBySplit<LabelledTexts> rows_;
};

/// Classifies with a head on the encoder's class token, or on the last token of the other families.
std::unique_ptr<Task> classification_by_head(const Experiment& experiment, Vocabulary vocabulary,
                                             RowsBySplit<LabelledTexts> rows);
/// Classifies with an encoder-decoder that reads the text and writes the name of the class. The answer is the
/// class whose name is most likely under the model.
std::unique_ptr<Task> classification_by_text(const Experiment& experiment, Vocabulary vocabulary,
                                             RowsBySplit<LabelledTexts> rows);

}  // namespace zoo

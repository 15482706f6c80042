#include <algorithm>
#include <utility>

#include "models/model.h"
#include "tasks/evaluation.h"
#include "tasks/examples.h"
#include "tasks/text/label_likelihood.h"
#include "tasks/text/text_classifier.h"
#include "text/batches/text_batches.h"
#include "tokenizers/tokenize.h"

namespace zoo {
namespace {

/// The number of rows in the first batches.
int64_t n_rows_of(BatchSource& source, int64_t n_batches) {
  int64_t n_rows = 0;
  for (int64_t i = 0; i < std::min(n_batches, source.n_batches(0)); ++i)
    n_rows += source.batch(0, i).n_rows();
  return n_rows;
}

class ClassificationByText final : public TextClassifier {
 public:
  using TextClassifier::TextClassifier;

  ModelPurpose purpose() const override {
    return {.head = HeadKind::language_modeling,
            .vocab_size = tokenizer().vocab_size(),
            .start_token = decoder_start(tokenizer().special())};
  }

  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override {
    ExampleRecorder examples(options);
    Metrics metrics = loss_metrics(score(model, batches(split), examples.options()));
    examples.finish_rows();
    const auto rows = take_rows(split);
    auto n_rows = static_cast<int64_t>(rows.texts.size());
    if (options.max_batches) n_rows = n_rows_of(batches(split), *options.max_batches);
    const int64_t begin = n_rows * options.rank() / options.n_processes(),
                  end = n_rows * (options.rank() + 1) / options.n_processes();
    std::vector<EncodedText> texts;
    for (int64_t i = begin; i < end; ++i) texts.push_back(encode(rows.texts[static_cast<size_t>(i)], {}));
    ConfusionCounts counts(static_cast<int64_t>(labels().size()));
    const auto best = class_scores(model, texts).argmax(1);
    counts.add(best, targets(rows).slice(/*dim=*/0, begin, end));
    counts.finish(options);
    for (size_t i = 0; examples.is_wanted() && i < examples.examples().size(); ++i) {
      auto& example = examples.examples()[i];
      example.prediction = labels()[static_cast<size_t>(best[static_cast<int64_t>(i)].item<int64_t>())];
      example.target = rows.labels[i];
      example.right = example.prediction == example.target;
      example.n_answers = 1;
      example.n_right = *example.right ? 1 : 0;
    }
    name_inputs(split, options);
    metrics["accuracy"] = counts.accuracy();
    metrics["f1"] = counts.macro_f1();
    return metrics;
  }

 private:
  std::unique_ptr<BatchSource> open(Split split) override {
    const auto rows = take_rows(split);
    targets(rows);  // an unknown label is an error here too
    const int64_t length = experiment().data.sequence_length;
    auto texts = tokenize(rows.texts, tokenizer(), RowEnding::bare);
    note_length(texts, {}, split);
    return text_to_text_batches(std::move(texts), tokenize(rows.labels, tokenizer(), RowEnding::bare), length,
                                length, PairLayout::two_sides, tokenizer().special(), batch_options(split));
  }

  /// The scores are the log-likelihoods of the names of the classes.
  Scorer scorer(Model& model) const override {
    std::vector<TokenIds> names;
    for (const auto& label : labels()) names.push_back(tokenizer().encode(label));
    const auto likelihood = std::make_shared<LabelLikelihood>(model, tokenizer().special(), names,
                                                              experiment().data.sequence_length);
    // Every pair of a text and a class is a row with logits over the whole vocabulary.
    constexpr int64_t most_pairs = 256;
    return {.scores = [likelihood](const auto& texts) { return (*likelihood)(first_texts(texts)); },
            .most_rows = std::max<int64_t>(1, most_pairs / std::ssize(labels()))};
  }
  int64_t n_special_tokens(const EncodedText&) const override { return 1; }
};

}  // namespace

std::unique_ptr<Task> classification_by_text(const Experiment& experiment, Vocabulary vocabulary,
                                             RowsBySplit<LabelledTexts> rows) {
  return std::make_unique<ClassificationByText>(experiment, std::move(vocabulary), std::move(rows));
}

}  // namespace zoo

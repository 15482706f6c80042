// Predicts the marked tokens of each text: what follows a key that came before, the end of a pattern, a sum.
// Only what can be known is predicted, so accuracies say what a model can remember.

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "models/inference_scope.h"
#include "tasks/evaluation.h"
#include "tasks/library_tasks.h"
#include "tasks/task_checks.h"
#include "tasks/text/text_tasks.h"
#include "text/batches/padded_rows.h"
#include "text/batches/text_batches.h"
#include "text/corpus.h"
#include "tokenizers/tokenize.h"

namespace zoo {
namespace {

/// Each line is a text, unless the configuration says otherwise.
Corpus corpus_of(DataConfig data) {
  if (data.documents == DocumentSplit::none) data.documents = DocumentSplit::line;
  return Corpus(std::move(data));
}

class MarkedTokens final : public Task {
 public:
  MarkedTokens(const Experiment& experiment, Vocabulary vocabulary, Corpus corpus)
      : Task(experiment, std::move(vocabulary)), corpus_(std::move(corpus)) {}

  std::string hash_of_data() const override { return corpus_.hash_of_data(); }

  ModelPurpose purpose() const override {
    return {.head = HeadKind::language_modeling,
            .vocab_size = tokenizer().vocab_size(),
            .start_token = decoder_start(tokenizer().special())};
  }

  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override {
    ConfusionCounts counts(purpose().vocab_size);
    const Score scored = score(model, batches(split), options, [&](const auto& logits, const auto& targets) {
      counts.add(logits.argmax(-1), targets);
    });
    auto without_matrix = options;  // tokens are no classes
    without_matrix.confusion = nullptr;
    counts.finish(without_matrix);
    Metrics metrics = loss_metrics(scored);
    metrics["accuracy"] = counts.accuracy();
    return metrics;
  }

  /// The marked tokens of some texts, as the model and as the texts have them.
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override {
    constexpr size_t n_samples = 5;
    auto texts = inputs.empty() ? corpus_.texts(Split::valid) : inputs;
    texts.resize(std::min(n_samples, texts.size()));
    const InferenceScope scope(model);
    std::vector<Sample> samples;
    BatchOptions one_batch;
    one_batch.batch_size = 1;
    one_batch.order = BatchOptions::Order::sequential;
    for (const auto& text : texts) {
      const auto batch = model.on_device(source_of({text}, one_batch)->batch(0, 0));
      const auto logits = model.logits(model.features(batch));
      const int64_t n_tokens = std::min(logits.size(-1), tokenizer().vocab_size());
      const auto predicted = logits.narrow(-1, 0, n_tokens).argmax(-1);
      samples.push_back({.input = text,
                         .output = tokenizer().decode(int64_values(predicted)),
                         .reference = tokenizer().decode(int64_values(batch.targets))});
    }
    return samples;
  }

 private:
  std::unique_ptr<BatchSource> open(Split split) override {
    return source_of(corpus_.texts(split), batch_options(split));
  }

  std::unique_ptr<BatchSource> source_of(const std::vector<std::string>& texts,
                                         const BatchOptions& options) const {
    const auto& data = experiment().data;
    const auto written_mark = data.answer_mark.value_or("=");
    const auto mark = tokenizer().encode(written_mark);
    if (mark.size() != 1) {
      throw DataError(
          fmt::format("data.answer_mark '{}' is {} tokens, not one: use a character that is a token",
                      written_mark, mark.size()));
    }
    return marked_token_batches(tokenize(texts, tokenizer(), RowEnding::bare), mark.front(),
                                data.sequence_length, tokenizer().special(), options);
  }

  Corpus corpus_;
};

std::unique_ptr<Task> make_marked_tokens(const Experiment& experiment, Vocabulary vocabulary) {
  auto corpus = corpus_of(experiment.data);
  if (!vocabulary.tokenizer) {
    vocabulary.tokenizer =
        make_tokenizer_for(experiment.data.tokenizer, SpecialTokenSet::all, corpus.reader(Split::train));
  }
  return std::make_unique<MarkedTokens>(experiment, std::move(vocabulary), std::move(corpus));
}

void validate_marked_tokens(const Experiment& experiment, const Complain& complain) {
  require_shape(experiment, {FamilyShape::decoder}, "decoder", complain);
  require_positions(experiment, "data.sequence_length", experiment.data.sequence_length, complain);
}

}  // namespace

TaskType marked_tokens() {
  const Metric accuracy{.key = "accuracy", .label = "accuracy", .better = Better::higher, .percent = true};
  TaskType type;
  type.name = "marked_tokens";
  type.doc = "The marked tokens of each text, from the tokens before them.";
  type.best_by = {accuracy};
  type.comparison = accuracy;
  type.make = make_marked_tokens;
  type.validate = validate_marked_tokens;
  type.purpose = [](const Experiment&, int64_t vocab_size) -> std::optional<ModelPurpose> {
    return ModelPurpose{.head = HeadKind::language_modeling, .vocab_size = vocab_size, .start_token = 0};
  };
  type.layout = [](const Experiment&) { return TextLayout::tokens; };
  return type;
}

}  // namespace zoo

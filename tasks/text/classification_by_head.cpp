#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "models/families/families.h"
#include "models/model.h"
#include "tasks/evaluation.h"
#include "tasks/examples.h"
#include "tasks/text/text_classifier.h"
#include "text/batches/padded_rows.h"
#include "text/batches/text_batches.h"
#include "tokenizers/tokenize.h"

namespace zoo {
namespace {

class ClassificationByHead final : public TextClassifier {
 public:
  using TextClassifier::TextClassifier;

  ModelPurpose purpose() const override {
    return {.head = HeadKind::classification,
            .vocab_size = tokenizer().vocab_size(),
            .n_classes = static_cast<int64_t>(labels().size()),
            .start_token = shape_of(experiment().model) == FamilyShape::encoder_decoder
                               ? decoder_start(tokenizer().special())
                               : -1};
  }

  /// A model that was trained here was trained on single texts or on pairs. One from the Hub may read both.
  PairUse pairs() const override {
    if (!experiment().data.pair_column.empty()) return PairUse::always;
    if (!experiment().data.train.empty()) return PairUse::none;
    return class_position() == ClassPosition::first || tokenizer().frame() ? PairUse::possible
                                                                           : PairUse::none;
  }

  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override {
    if (problem() != Problem::single_label) {
      auto metrics = evaluate_problem(model, batches(split), problem(), {.labels = labels()}, options);
      name_inputs(split, options);
      return metrics;
    }
    ConfusionCounts counts(purpose().n_classes);
    ExampleRecorder examples(options);
    const auto look = [&](const torch::Tensor& logits, const torch::Tensor& targets) {
      const auto best = logits.argmax(-1);
      counts.add(best, targets);
      examples.add_classes(best, targets, named_by(labels()));
    };
    const Score scored = score(model, batches(split), examples.options(), look);
    counts.finish(options);
    examples.finish_rows();
    name_inputs(split, options);
    Metrics metrics = loss_metrics(scored);
    metrics["accuracy"] = counts.accuracy();
    metrics["f1"] = counts.macro_f1();
    return metrics;
  }

 private:
  std::unique_ptr<BatchSource> open(Split split) override {
    const auto rows = take_rows(split);
    auto texts = tokenize(rows.texts, tokenizer(), RowEnding::bare);
    auto seconds = tokenize(rows.pairs, tokenizer(), RowEnding::bare);
    note_length(texts, seconds, split);
    auto right = targets(rows);
    if (split == Split::train && problem() == Problem::regression) set_mean_target(right);
    if (rows.pairs.empty()) return single_batches(std::move(texts), std::move(right), batch_options(split));
    return pair_batches(std::move(texts), std::move(seconds), std::move(right), batch_options(split));
  }

  Scorer scorer(Model& model) const override {
    constexpr int64_t most_rows = 1024;
    const auto scores = [this, &model](const std::vector<EncodedText>& texts) {
      BatchOptions one_batch;
      one_batch.batch_size = std::ssize(texts);
      one_batch.order = BatchOptions::Order::sequential;
      const auto no_targets = torch::zeros({std::ssize(texts)}, torch::kLong);
      auto firsts = TokenStore::from_rows(first_texts(texts));
      std::unique_ptr<BatchSource> source;
      if (texts.front().second) {
        std::vector<TokenIds> seconds;
        for (const auto& text : texts) seconds.push_back(*text.second);
        source = pair_batches(std::move(firsts), TokenStore::from_rows(seconds), no_targets, one_batch);
      } else {
        source = single_batches(std::move(firsts), no_targets, one_batch);
      }
      const auto batch = model.on_device(source->batch(0, 0));
      return model.logits(model.features(batch)).to(torch::kCPU, torch::kFloat);
    };
    return {.scores = scores, .most_rows = most_rows};
  }

  ClassPosition class_position() const {
    return shape_of(experiment().model) == FamilyShape::encoder ? ClassPosition::first : ClassPosition::last;
  }
  int64_t n_special_tokens(const EncodedText& text) const override {
    if (text.second) return pair_frame().n_tokens_of_pair();
    const auto around = frame();
    return around ? around->n_tokens() : 1;  // eos
  }

  /// The tokens around a text; nothing: the vocabulary does not say them, and the last one is eos.
  std::optional<TextFrame> frame() const {
    if (class_position() == ClassPosition::last) return tokenizer().frame();
    return encoder_frame(tokenizer(), "text_classification with an encoder");
  }

  /// The tokens around the texts of a pair. In a model with one segment, both texts are in this one.
  TextFrame pair_frame() const {
    auto around = frame();
    if (!around)
      throw DataError("data.pair_column: the tokenizer does not say what stands around a pair of texts");
    const bool has_segments = experiment().model.n_segments != 1;
    if (!has_segments) around->second_segment = 0;
    if (around->pair == PairTemplate::other_tokens ||
        (around->pair == PairTemplate::other_segments && has_segments)) {
      throw DataError(
          fmt::format("tokenizer.json: post_processor: the template 'pair' has other {} than the template "
                      "'single' with a "
                      "second text, which is not supported: give single texts",
                      around->pair == PairTemplate::other_tokens ? "tokens at its ends" : "type ids"));
    }
    return *std::move(around);
  }

  std::unique_ptr<BatchSource> single_batches(TokenStore texts, torch::Tensor right,
                                              const BatchOptions& options) const {
    return classification_batches(std::move(texts), std::move(right), experiment().data.sequence_length,
                                  class_position(), tokenizer().special(), options, frame());
  }
  std::unique_ptr<BatchSource> pair_batches(TokenStore texts, TokenStore seconds, torch::Tensor right,
                                            const BatchOptions& options) const {
    return pair_classification_batches(std::move(texts), std::move(seconds), std::move(right),
                                       experiment().data.sequence_length, class_position(), pair_frame(),
                                       tokenizer().special().pad, options);
  }
};

}  // namespace

std::unique_ptr<Task> classification_by_head(const Experiment& experiment, Vocabulary vocabulary,
                                             RowsBySplit<LabelledTexts> rows) {
  return std::make_unique<ClassificationByHead>(experiment, std::move(vocabulary), std::move(rows));
}

}  // namespace zoo

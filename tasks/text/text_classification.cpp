// Predicts the class of a text, with each of the three families.

#include "tasks/text/text_classification.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/epoch_plan.h"
#include "data/text/batches/padded_rows.h"
#include "data/text/batches/text_batches.h"
#include "data/text/corpus.h"
#include "data/text/tokenize.h"
#include "generation/prompt.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "models/model.h"
#include "tasks/evaluation.h"
#include "tasks/labels.h"
#include "tasks/library_tasks.h"
#include "tasks/task_checks.h"
#include "tasks/text/label_likelihood.h"
#include "tasks/text/text_tasks.h"

namespace zoo {
namespace {

class TextClassification : public Task {
 public:
  using Task::Task;

  std::vector<Prediction> predict(Model& model, const std::vector<std::string>& inputs,
                                  const PredictOptions& options) override;
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override;

 protected:
  const std::vector<std::string>& labels() const { return vocabulary().labels; }

  /// The class of each row. Throws UnknownSymbolError for a label that the training data do not have.
  std::vector<int64_t> classes(const LabelledTexts& rows) const {
    std::vector<int64_t> result;
    for (const auto& label : rows.labels) result.push_back(class_of(label, labels()));
    return result;
  }

  /// Token ids without special tokens.
  struct EncodedText {
    TokenIds text, second;  // second: of a pair; else empty
  };

  /// What turns texts into scores of the classes.
  struct Scorer {
    /// (B, C) float on the CPU. The softmax of a row is the probabilities of the classes. The scorer cuts
    /// texts that are too long.
    std::function<torch::Tensor(const std::vector<EncodedText>& texts)> scores;
    int64_t most_rows;  // texts in one call
  };
  virtual Scorer scorer(Model& model) const = 0;
  /// The number of special tokens around a text.
  virtual int64_t n_special_tokens() const = 0;

  /// Whether pairs of texts are classified.
  bool reads_pairs() const { return !experiment().data.pair_column.empty(); }

  EncodedText encode(const std::string& input) const {
    if (!reads_pairs()) return {.text = encode_text(input), .second = {}};
    const auto [first, second] = split_pair(input);
    return {.text = encode_text(first), .second = encode_text(second)};
  }

  static std::vector<TokenIds> first_texts(const std::vector<EncodedText>& encoded) {
    std::vector<TokenIds> texts;
    for (const auto& each : encoded) texts.push_back(each.text);
    return texts;
  }

  /// (N, C) float on the CPU: the scores of all texts, computed with batches of similar lengths.
  torch::Tensor class_scores(Model& model, const std::vector<EncodedText>& texts,
                             const PredictOptions& options = {}) const {
    constexpr int64_t most_tokens = 4096;
    const InferenceScope scope(model);
    const Scorer classifier = scorer(model);
    std::vector<int64_t> lengths;
    for (const auto& text : texts) lengths.push_back(std::min(length_with_specials(text), length_limit()));
    auto all = torch::empty({std::ssize(texts), std::ssize(labels())});
    const auto score_batch = [&](std::span<const int64_t> examples) {
      std::vector<EncodedText> rows;
      for (const int64_t i : examples) rows.push_back(texts[static_cast<size_t>(i)]);
      all.index_copy_(0, int64_tensor(examples), classifier.scores(rows));
    };
    for_each_batch(lengths, {.rows = classifier.most_rows, .tokens = most_tokens}, score_batch,
                   options.on_progress);
    return all;
  }

  /// Says how many texts, or pairs if there are any, are cut.
  void note_length(const TokenStore& texts, const TokenStore& pairs, Split split) {
    int64_t n_cut = 0;
    for (int64_t i = 0; i < texts.n_rows(); ++i) {
      const int64_t of_pair = i < pairs.n_rows() ? pairs.row_length(i) : 0;
      n_cut += texts.row_length(i) + of_pair + n_special_tokens() > length_limit() ? 1 : 0;
    }
    add_notes(notes_on_cut(n_cut, texts.n_rows(), "texts", split, "data.sequence_length", length_limit()));
  }

 private:
  int64_t length_limit() const { return experiment().data.sequence_length; }
  int64_t length_with_specials(const EncodedText& text) const {
    return std::ssize(text.text) + std::ssize(text.second) + n_special_tokens();
  }
  TokenIds encode_text(const std::string& text) const {
    return tokenizer().encode(beginning_to_read(without_blanks_at_end(text), length_limit()));
  }

  /// The rows of samples: `inputs`, or the first rows of the validation data.
  LabelledTexts rows_to_show(const std::vector<std::string>& inputs) const {
    constexpr size_t n_samples = 5;
    if (!inputs.empty()) return {.texts = inputs, .pairs = {}, .labels = {}};
    const auto rows = read_labelled(experiment().data, Split::valid);
    LabelledTexts shown{.texts = rows.inputs(), .pairs = {}, .labels = rows.labels};
    shown.texts.resize(std::min(n_samples, shown.texts.size()));
    shown.labels.resize(shown.texts.size());
    return shown;
  }
};

std::vector<Prediction> TextClassification::predict(Model& model, const std::vector<std::string>& inputs,
                                                    const PredictOptions& options) {
  std::vector<Prediction> predictions;
  std::vector<EncodedText> texts;
  std::vector<size_t> origins;  // of the texts among the inputs: those with tokens
  for (const auto& input : inputs) {
    try {
      auto text = encode(input);
      predictions.push_back({.input = input, .cut = length_with_specials(text) > length_limit()});
      if (text.text.empty() && text.second.empty()) continue;
      texts.push_back(std::move(text));
      origins.push_back(predictions.size() - 1);
    } catch (const DataError& error) {
      throw DataError(fmt::format("text {}: {}", predictions.size() + 1, error.what()));
    }
  }
  const auto probabilities = class_scores(model, texts, options).to(torch::kDouble).softmax(1);
  if (probabilities.isnan().any().item<bool>()) fail_not_a_number();
  for (size_t i = 0; i < origins.size(); ++i)
    predictions[origins[i]].labels = ranked(probabilities[static_cast<int64_t>(i)], labels());
  return predictions;
}

std::vector<Sample> TextClassification::samples(Model& model, const std::vector<std::string>& inputs) {
  const auto rows = rows_to_show(inputs);
  std::vector<EncodedText> texts;
  for (const auto& text : rows.texts) texts.push_back(encode(text));
  const auto predicted = int64_values(class_scores(model, texts).argmax(1));
  std::vector<Sample> samples;
  for (size_t i = 0; i < predicted.size(); ++i) {
    Sample sample{.input = rows.texts[i], .output = labels()[static_cast<size_t>(predicted[i])]};
    if (!rows.labels.empty()) sample.reference = rows.labels[i];
    samples.push_back(std::move(sample));
  }
  return samples;
}

/// The number of rows in the first batches.
int64_t n_rows_of(BatchSource& source, int64_t n_batches) {
  int64_t n_rows = 0;
  for (int64_t i = 0; i < std::min(n_batches, source.n_batches(0)); ++i)
    n_rows += source.batch(0, i).n_rows();
  return n_rows;
}

/// Classifies with a head on the encoder's class token, or on the last token of the other families.
class ClassificationByHead final : public TextClassification {
 public:
  using TextClassification::TextClassification;

  ModelPurpose purpose() const override {
    return {.head = HeadKind::classification,
            .vocab_size = tokenizer().vocab_size(),
            .n_classes = static_cast<int64_t>(labels().size()),
            .start_token = shape_of(experiment().model) == FamilyShape::encoder_decoder
                               ? decoder_start(tokenizer().special())
                               : -1};
  }

  Metrics evaluate(Model& model, Split split, const EvaluationOptions& options) override {
    ConfusionCounts counts(purpose().n_classes);
    const Score scored = score(model, batches(split), options, [&](const auto& logits, const auto& targets) {
      counts.add(logits.argmax(-1), targets);
    });
    counts.finish(options);
    Metrics metrics = loss_metrics(scored);
    metrics["accuracy"] = counts.accuracy();
    metrics["f1"] = counts.macro_f1();
    return metrics;
  }

 private:
  std::unique_ptr<BatchSource> open(Split split) override {
    const auto rows = read_labelled(experiment().data, split);
    auto texts = tokenize(rows.texts, tokenizer(), RowEnding::bare),
         pairs = tokenize(rows.pairs, tokenizer(), RowEnding::bare);
    note_length(texts, pairs, split);
    return make_batches(std::move(texts), std::move(pairs), classes(rows), batch_options(split));
  }

  Scorer scorer(Model& model) const override {
    constexpr int64_t most_rows = 1024;
    const auto scores = [this, &model](const std::vector<EncodedText>& texts) {
      BatchOptions one_batch;
      one_batch.batch_size = std::ssize(texts);
      one_batch.order = BatchOptions::Order::sequential;
      std::vector<TokenIds> seconds;
      for (const auto& text : texts) seconds.push_back(text.second);
      const auto source =
          make_batches(TokenStore::from_rows(first_texts(texts)), TokenStore::from_rows(seconds),
                       std::vector<int64_t>(texts.size(), 0), one_batch);
      const auto batch = source->batch(0, 0).to(model.device());
      return model.logits(model.features(batch)).to(torch::kCPU, torch::kFloat);
    };
    return {.scores = scores, .most_rows = most_rows};
  }

  ClassPosition class_position() const {
    return shape_of(experiment().model) == FamilyShape::encoder ? ClassPosition::first : ClassPosition::last;
  }
  int64_t n_special_tokens() const override {
    if (reads_pairs()) return pair_frame().n_tokens_of_pair();
    if (class_position() == ClassPosition::first) return 2;
    const auto around = frame();
    return around ? around->n_tokens() : 1;
  }

  /// The tokens around a text whose last token is read, if the vocabulary says them.
  std::optional<TextFrame> frame() const {
    return class_position() == ClassPosition::last ? tokenizer().frame() : std::nullopt;
  }

  /// The tokens around the texts of a pair. In a model with one segment, both texts are in this one.
  TextFrame pair_frame() const {
    auto frame = encoder_frame(tokenizer(), "text_classification with an encoder");
    if (experiment().model.n_segments == 1) frame.second_segment = 0;
    return frame;
  }

  /// `seconds` are read only if there are pairs.
  std::unique_ptr<BatchSource> make_batches(TokenStore texts, TokenStore seconds,
                                            std::vector<int64_t> classes, const BatchOptions& options) const {
    if (reads_pairs()) {
      return pair_classification_batches(std::move(texts), std::move(seconds), std::move(classes),
                                         experiment().data.sequence_length, pair_frame(),
                                         tokenizer().special().pad, options);
    }
    return classification_batches(std::move(texts), std::move(classes), experiment().data.sequence_length,
                                  class_position(), tokenizer().special(), options, frame());
  }
};

/// Classifies with an encoder-decoder that reads the text and writes the name of the class. The answer is the
/// class whose name is most likely under the model.
class ClassificationByText final : public TextClassification {
 public:
  using TextClassification::TextClassification;

  ModelPurpose purpose() const override {
    return {.head = HeadKind::language_modeling,
            .vocab_size = tokenizer().vocab_size(),
            .start_token = decoder_start(tokenizer().special())};
  }

  Metrics evaluate(Model& model, Split split, const EvaluationOptions& options) override {
    Metrics metrics = loss_metrics(score(model, batches(split), options));
    const auto rows = read_labelled(experiment().data, split);
    auto n_rows = static_cast<int64_t>(rows.texts.size());
    if (options.max_batches) n_rows = n_rows_of(batches(split), *options.max_batches);
    const int64_t begin = n_rows * options.rank() / options.n_processes(),
                  end = n_rows * (options.rank() + 1) / options.n_processes();
    std::vector<EncodedText> texts;
    for (int64_t i = begin; i < end; ++i) texts.push_back(encode(rows.texts[static_cast<size_t>(i)]));
    ConfusionCounts counts(static_cast<int64_t>(labels().size()));
    counts.add(class_scores(model, texts).argmax(1),
               torch::tensor(classes(rows), torch::kLong).slice(/*dim=*/0, begin, end));
    counts.finish(options);
    metrics["accuracy"] = counts.accuracy();
    metrics["f1"] = counts.macro_f1();
    return metrics;
  }

 private:
  std::unique_ptr<BatchSource> open(Split split) override {
    const auto rows = read_labelled(experiment().data, split);
    classes(rows);  // an unknown label is an error here too
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
  int64_t n_special_tokens() const override { return 1; }
};

std::unique_ptr<Task> make_text_classification(const Experiment& experiment, Vocabulary vocabulary) {
  const bool as_text = class_answer(experiment) == ClassAnswer::text;
  if (!vocabulary.tokenizer || vocabulary.labels.empty()) {
    const auto rows = read_labelled(experiment.data, Split::train);
    vocabulary.labels = distinct_labels(rows.labels);
    // An encoder-decoder needs the tokens of the labels, because it writes them. The other families have the
    // same tokens, so that the families are comparable.
    if (!vocabulary.tokenizer) {
      vocabulary.tokenizer = make_tokenizer_for(experiment.data.tokenizer, SpecialTokenSet::all,
                                                reader_of({&rows.texts, &rows.pairs, &vocabulary.labels}));
    }
  }
  if (as_text) return std::make_unique<ClassificationByText>(experiment, std::move(vocabulary));
  return std::make_unique<ClassificationByHead>(experiment, std::move(vocabulary));
}

void validate_text_classification(const Experiment& experiment, const Complain& complain) {
  require_shape(experiment, {FamilyShape::encoder, FamilyShape::decoder, FamilyShape::encoder_decoder},
                "encoder, decoder or encoder_decoder", complain);
  require_positions(experiment, "data.sequence_length", experiment.data.sequence_length, complain);
  if (class_answer(experiment) == ClassAnswer::text &&
      shape_of(experiment.model) != FamilyShape::encoder_decoder)
    complain("task.answer", "text is for an encoder_decoder: the other families answer by a head");
  if (experiment.data.pair_column.empty()) return;
  if (shape_of(experiment.model) != FamilyShape::encoder)
    complain("data.pair_column", "is for an encoder, which reads both texts of a pair at once");
}

}  // namespace

void describe(ConfigVisitor& v, TextClassificationConfig& c) {
  v.field("answer", c.answer,
          "How the class is said: by a head that scores the classes, or (encoder_decoder) as text; default: "
          "text in an encoder_decoder, else head.");
}

ClassAnswer class_answer(const Experiment& experiment) {
  const auto usual =
      shape_of(experiment.model) == FamilyShape::encoder_decoder ? ClassAnswer::text : ClassAnswer::head;
  if (!experiment.task.options) return usual;
  return experiment.task.as<TextClassificationConfig>().answer.value_or(usual);
}

TaskType text_classification() {
  const Metric accuracy{.key = "accuracy", .label = "accuracy", .better = Better::higher, .percent = true};
  TaskType type;
  type.name = "text_classification";
  type.doc = "The class of a text.";
  type.make_options = options_of<TextClassificationConfig>();
  type.best_by = {accuracy};
  type.comparison = accuracy;
  type.needs = VocabularyNeeds::tokenizer_and_labels;
  type.predicts_from = PredictionInput::text;
  type.make = make_text_classification;
  type.validate = validate_text_classification;
  type.layout = [](const Experiment& experiment) {
    switch (shape_of(experiment.model)) {
      case FamilyShape::encoder:
        return TextLayout::cls_tokens_sep;
      case FamilyShape::encoder_decoder:
        return TextLayout::source_and_target;
      default:
        return TextLayout::tokens_eos;
    }
  };
  return type;
}

}  // namespace zoo

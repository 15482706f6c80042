// Predicts the class, or the labels, of each word or character of a text, with an encoder or a decoder: named
// entities, parts of speech, secondary structure of proteins.

#include <algorithm>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/epoch_plan.h"
#include "data/text_files.h"
#include "generation/prompt.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "models/model.h"
#include "tasks/evaluation.h"
#include "tasks/examples.h"
#include "tasks/labels.h"
#include "tasks/library_tasks.h"
#include "tasks/metrics/entity_metrics.h"
#include "tasks/problem.h"
#include "tasks/task_checks.h"
#include "tasks/text/text_tasks.h"
#include "text/batches/padded_rows.h"
#include "text/batches/tagged_texts.h"
#include "text/batches/token_classification_batches.h"
#include "text/batches/unit_encoder.h"

namespace zoo {
namespace {

/// The keys of the task, beside `type: token_classification`.
struct TokenClassificationConfig {
  Problem problem = Problem::single_label;
};
void describe(ConfigVisitor& v, TokenClassificationConfig& c) { describe_problem(v, c.problem); }

class TokenClassification final : public Task {
 public:
  TokenClassification(const Experiment& experiment, Vocabulary vocabulary, RowsBySplit<TaggedRows> rows)
      : Task(experiment, std::move(vocabulary)), rows_(std::move(rows)) {}

  ModelPurpose purpose() const override {
    return {.head = HeadKind::token_classification,
            .vocab_size = tokenizer().vocab_size(),
            .n_classes = std::ssize(labels())};
  }

  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override;
  std::vector<Prediction> predict(Model& model, const std::vector<std::string>& inputs,
                                  const PredictOptions& options) override;
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override;

 private:
  const std::vector<std::string>& labels() const { return vocabulary().labels; }
  Problem problem() const { return problem_; }
  /// Several labels of a character cannot be told apart.
  LabelUnit configured_unit() const {
    const auto configured = experiment().data.label_unit;
    return problem_ == Problem::multi_label && configured == LabelUnit::automatic ? LabelUnit::word
                                                                                  : configured;
  }

  std::unique_ptr<BatchSource> open(Split split) override;

  /// What stands around a text: nothing for a decoder, unless the vocabulary says otherwise.
  TextFrame frame() const {
    return shape_of(experiment().model) == FamilyShape::encoder
               ? encoder_frame(tokenizer(), "token_classification with an encoder")
               : tokenizer().frame().value_or(TextFrame{});
  }
  /// The one label of a token, by its number.
  std::vector<LabelProbability> likeliest(const torch::Tensor& probability,
                                          const torch::Tensor& number) const {
    return {{.label = labels()[static_cast<size_t>(number.item<int64_t>())],
             .probability = probability.item<double>()}};
  }
  /// As tables write them.
  std::string words_of_labels(const std::vector<LabelProbability>& of_token) const {
    if (problem() == Problem::single_label) return of_token.front().label;
    constexpr double half = 0.5;
    std::string text;
    for (const auto& [label, probability] : of_token) {
      if (probability >= half) text += (text.empty() ? "" : experiment().data.label_separator) + label;
    }
    return text.empty() ? std::string(kNoLabels) : text;
  }
  int64_t pad() const { return std::max<int64_t>(tokenizer().special().pad, 0); }
  /// The tokens of a text that a model reads, without the frame.
  AlignedTokens aligned_tokens(UnitEncoder& encode, std::string_view text, LabelUnit unit) const {
    const auto around = frame();
    auto aligned = encode(text, unit, experiment().data.sequence_length - around.n_tokens());
    if (aligned.cut && around.cut_at == TextEnd::left) {
      throw DataError(
          "the text is too long, and its tokenizer cuts the beginnings of texts (truncation_side), which "
          "token_classification does not: shorten the text");
    }
    return aligned;
  }

  /// Sets the texts of the examples, if they are wanted, and names kNotCounted in the place of each unit that
  /// is not counted, so that labels stay beside their words.
  void name_texts(Split split, const EvaluationOptions& options);

  /// Adds precision, recall and F1 of the entities of a split. The predictions and the right classes are
  /// those of this process's batches, in their order. Collective.
  void add_entity_metrics(const std::vector<int64_t>& predicted, const std::vector<int64_t>& actual,
                          Split split, const EvaluationOptions& options, Metrics& metrics);

  const Problem problem_ = problem_of(experiment());
  std::array<std::vector<std::vector<bool>>, 3> counted_;  // by Split: which units of each row
  RowsBySplit<TaggedRows> rows_;
};

std::unique_ptr<BatchSource> TokenClassification::open(Split split) {
  std::unordered_map<std::string_view, int64_t> classes;
  for (size_t i = 0; i < labels().size(); ++i) classes.emplace(labels()[i], static_cast<int64_t>(i));
  UnitEncoder encode(tokenizer());
  std::vector<TokensWithClasses> rows;
  int64_t n_cut = 0;
  const auto texts = with_units(rows_.take(split), experiment().data, labels(), problem());
  for (const auto& text : texts) {
    auto aligned = aligned_tokens(encode, text.text, text.unit);
    n_cut += aligned.cut ? 1 : 0;
    TokensWithClasses row{.ids = std::move(aligned.ids), .positions = {}, .classes = {}};
    const auto names = units_of(text.labels, text.unit);
    std::vector<bool> counted;
    for (size_t i = 0; i < aligned.first.size(); ++i) {
      if (aligned.first[i] < 0) continue;
      counted.push_back(names[i] != kNotCounted);
      if (!counted.back()) continue;
      row.positions.push_back(aligned.first[i]);
      if (problem() == Problem::single_label) {
        row.classes.push_back(classes.at(names[i]));
        continue;
      }
      const size_t begin = row.numbers.size();
      row.numbers.resize(begin + classes.size());
      for (const auto& label : labels_of_unit(names[i], experiment().data.label_separator))
        row.numbers[begin + static_cast<size_t>(classes.at(label))] = 1;
    }
    if (row.positions.empty()) continue;
    rows.push_back(std::move(row));
    if (split != Split::train) counted_[static_cast<size_t>(split)].push_back(std::move(counted));
  }
  add_notes(notes_on_cut(n_cut, std::ssize(texts), "texts, with their labels,", split, "data.sequence_length",
                         experiment().data.sequence_length));
  return token_classification_batches(
      std::move(rows), frame(), pad(), batch_options(split),
      {.probability = experiment().data.hide_probability, .mask = tokenizer().special().mask});
}

Metrics TokenClassification::measure(Model& model, Split split, const EvaluationOptions& options) {
  if (problem() != Problem::single_label) {
    auto metrics = evaluate_problem(
        model, batches(split), problem(),
        {.labels = labels(), .separator = experiment().data.label_separator, .none = std::string(kNoLabels)},
        options);
    name_texts(split, options);
    return metrics;
  }
  const bool has_entities = mark_entities(labels());
  if (options.wanted == "entity_f1" && !has_entities)
    throw ConfigError("training.best_by: entity_f1 needs labels of entities, such as B-PER; there are none");
  ConfusionCounts counts(std::ssize(labels()));
  ExampleRecorder examples(options);
  std::vector<int64_t> predicted, actual;
  const auto look = [&](const torch::Tensor& logits, const torch::Tensor& targets) {
    const auto best = logits.argmax(-1);
    counts.add(best, targets);
    examples.add_classes(best, targets, named_by(labels()));
    if (!has_entities) return;
    for (auto [list, values] : {std::pair{&predicted, best}, std::pair{&actual, targets}}) {
      const auto more = int64_values(values);
      list->insert(list->end(), more.begin(), more.end());
    }
  };
  Metrics metrics = loss_metrics(score(model, batches(split), examples.options(), look));
  counts.finish(options);
  examples.finish_rows();
  name_texts(split, options);
  metrics["accuracy"] = counts.accuracy();
  metrics["f1"] = counts.macro_f1();
  if (has_entities) add_entity_metrics(predicted, actual, split, options, metrics);
  return metrics;
}

void TokenClassification::name_texts(Split split, const EvaluationOptions& options) {
  if (!options.examples) return;
  ExampleRecorder recorder(options);
  name_inputs(recorder, batches(split), tokenizer());
  const auto& counted = counted_[static_cast<size_t>(split)];
  for (size_t row = 0; row < counted.size() && row < options.examples->size(); ++row) {
    auto& example = (*options.examples)[row];
    for (auto* const text : {&example.prediction, &example.target}) {
      if (!*text) continue;
      std::istringstream words(**text);
      std::string all;
      for (const bool is_counted : counted[row]) {
        std::string word(kNotCounted);
        if (is_counted) words >> word;
        all += (all.empty() ? "" : " ") + word;
      }
      *text = std::move(all);
    }
  }
}

void TokenClassification::add_entity_metrics(const std::vector<int64_t>& predicted,
                                             const std::vector<int64_t>& actual, Split split,
                                             const EvaluationOptions& options, Metrics& metrics) {
  EntityCounts entities;
  size_t begin = 0;
  const auto add_text = [&](size_t n) {
    std::vector<std::string_view> guesses, right;
    for (size_t i = begin; i < begin + n; ++i) {
      guesses.emplace_back(labels()[static_cast<size_t>(predicted[i])]);
      right.emplace_back(labels()[static_cast<size_t>(actual[i])]);
    }
    entities.add(guesses, right);
    begin += n;
  };
  for_each_own_batch(batches(split), options, [&](const Batch& batch) {
    std::vector<size_t> n_targets(static_cast<size_t>(batch.n_rows()));
    for (const int64_t position : int64_values(batch.positions))
      ++n_targets[static_cast<size_t>(position / batch.input.length())];
    for (const size_t n : n_targets) add_text(n);
  });
  const auto sums = torch::tensor({entities.found, entities.predicted, entities.actual}, torch::kLong);
  sum_over_processes(options, sums);
  const auto all = int64_values(sums);
  entities = {.found = all[0], .predicted = all[1], .actual = all[2]};
  metrics["entity_precision"] = entities.precision();
  metrics["entity_recall"] = entities.recall();
  metrics["entity_f1"] = entities.f1();
}

std::vector<Prediction> TokenClassification::predict(Model& model, const std::vector<std::string>& inputs,
                                                     const PredictOptions& options) {
  constexpr int64_t most_rows = 1024, most_tokens_at_once = 4096;
  const auto around = frame();
  UnitEncoder encode(tokenizer());
  std::vector<Prediction> predictions;
  std::vector<TokensWithClasses> rows;             // of the inputs with tokens
  std::vector<std::vector<LabelledToken*>> units;  // of each row, where its positions' predictions go
  std::vector<int64_t> lengths;
  predictions.reserve(inputs.size());  // `units` points into it
  for (const auto& input : inputs) {
    auto& prediction = predictions.emplace_back(Prediction{.input = input});
    auto& tokens = prediction.answer.emplace<PredictedTokens>(PredictedTokens{.problem = problem()}).tokens;
    const auto text = part_to_read(without_blanks_at_end(input), experiment().data.sequence_length);
    const auto unit = unit_of(text, configured_unit(), labels());
    AlignedTokens aligned;
    try {
      aligned = aligned_tokens(encode, text, unit);
    } catch (const DataError& error) {
      throw DataError(fmt::format("text {}: {}", predictions.size(), error.what()));
    }
    prediction.cut = aligned.cut;
    const auto spelled = units_of(text, unit);
    TokensWithClasses row{.ids = std::move(aligned.ids), .positions = {}, .classes = {}};
    std::vector<size_t> with_tokens;
    for (size_t i = 0; i < aligned.first.size(); ++i) {
      tokens.push_back({.token = std::string(spelled[i])});
      if (aligned.first[i] < 0) continue;
      row.positions.push_back(aligned.first[i]);
      with_tokens.push_back(i);
    }
    if (row.positions.empty()) continue;
    row.classes.resize(row.positions.size());
    lengths.push_back(std::ssize(row.ids) + around.n_tokens());
    rows.push_back(std::move(row));
    auto& places = units.emplace_back();
    for (const size_t i : with_tokens) places.push_back(&tokens[i]);
  }

  const InferenceScope scope(model);
  const auto predict_batch = [&](std::span<const int64_t> examples) {
    std::vector<const TokensWithClasses*> chosen;
    for (const int64_t i : examples) chosen.push_back(&rows[static_cast<size_t>(i)]);
    const auto batch = model.on_device(token_classification_batch(chosen, around, pad()));
    const auto outputs = activated(model.logits(model.features(batch)), problem());
    const auto [best, classes] = outputs.max(1);
    int64_t at = 0;
    for (const int64_t i : examples) {
      for (auto* token : units[static_cast<size_t>(i)]) {
        token->labels = problem() == Problem::multi_label ? ranked(outputs[at], labels())
                                                          : likeliest(best[at], classes[at]);
        ++at;
      }
    }
  };
  for_each_batch(lengths, {.rows = most_rows, .tokens = most_tokens_at_once}, predict_batch,
                 options.on_progress);
  return predictions;
}

std::vector<Sample> TokenClassification::samples(Model& model, const std::vector<std::string>& inputs) {
  constexpr size_t n_samples = 5;
  auto shown = inputs;
  std::vector<std::string> references;
  if (inputs.empty()) {
    for (auto& text : read_tagged(experiment().data, Split::valid, labels(), problem())) {
      if (shown.size() == n_samples) break;
      shown.push_back(std::move(text.text));
      references.push_back(std::move(text.labels));
    }
  }
  std::vector<Sample> samples;
  for (const auto& prediction : predict(model, shown, {})) {
    const auto unit = unit_of(prediction.input, configured_unit(), labels());
    Sample sample{.input = prediction.input, .output = {}};
    for (const auto& token : prediction.tokens()) {
      if (unit == LabelUnit::word && !sample.output.empty()) sample.output += ' ';
      sample.output += token.has_class() ? words_of_labels(token.labels) : std::string(kNotCounted);
    }
    if (!references.empty()) sample.reference = references[samples.size()];
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::unique_ptr<Task> make_token_classification(const Experiment& experiment, Vocabulary vocabulary) {
  const auto problem = problem_of(experiment);
  auto data = tagged_rows(experiment.data, problem);
  if (!vocabulary.tokenizer || vocabulary.labels.empty()) {
    const auto rows = with_units(data.of(Split::train), experiment.data, vocabulary.labels, problem);
    if (vocabulary.labels.empty()) {
      auto all = rows;
      // A label may stand only in the rows that are for validation.
      if (is_shared(experiment.data, Split::valid))
        std::ranges::move(with_units(data.of(Split::valid), experiment.data, {}, problem),
                          std::back_inserter(all));
      vocabulary.labels = classes_of(all, problem, experiment.data.label_separator);
    }
    if (!vocabulary.tokenizer) {
      std::vector<std::string> texts;
      for (const auto& row : rows) texts.push_back(row.text);
      vocabulary.tokenizer =
          make_tokenizer_for(experiment.data.tokenizer, SpecialTokenSet::all, reader_of({&texts}));
    }
  }
  return std::make_unique<TokenClassification>(experiment, std::move(vocabulary), std::move(data));
}

void validate_token_classification(const Experiment& experiment, const Complain& complain) {
  validate_problem(experiment, complain);
  if (problem_of(experiment) == Problem::regression)
    complain("task.problem", "regression is for whole texts and images, not for their parts");
  require_shape(experiment, {FamilyShape::encoder, FamilyShape::decoder}, "encoder or decoder", complain);
  require_positions(experiment, "data.sequence_length", experiment.data.sequence_length, complain);
}

}  // namespace

TaskType token_classification() {
  const Metric accuracy{.key = "accuracy", .label = "accuracy", .better = Better::higher, .percent = true};
  TaskType type;
  type.name = "token_classification";
  type.doc = "The class, or the labels, of each word or character of a text, such as named entities.";
  type.make_options = options_of<TokenClassificationConfig>();
  type.problem = problem_in<TokenClassificationConfig>;
  type.best_by = {accuracy,
                  {.key = "f1", .label = "F1", .better = Better::higher, .percent = true},
                  {.key = "entity_f1", .label = "F1 of entities", .better = Better::higher, .percent = true}};
  std::ranges::move(metrics_of_problems(), std::back_inserter(type.best_by));
  type.comparison = accuracy;
  type.needs = VocabularyNeeds::tokenizer_and_labels;
  type.predicts_from = PredictionInput::text;
  type.predicts = PredictionKind::tokens;
  type.make = make_token_classification;
  type.validate = validate_token_classification;
  type.layout = [](const Experiment& experiment) {
    return shape_of(experiment.model) == FamilyShape::encoder ? TextLayout::cls_tokens_sep
                                                              : TextLayout::tokens;
  };
  return type;
}

}  // namespace zoo

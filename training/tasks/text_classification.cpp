// Predicts the class of a text, with each of the three families.

#include <algorithm>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/text.h"
#include "data/text/text_batches.h"
#include "data/text/token_store.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "training/tasks/evaluation.h"
#include "training/tasks/label_likelihood.h"
#include "training/tasks/text_tasks.h"

namespace zoo {
namespace {

class TextClassification : public Task {
 public:
  using Task::Task;

 protected:
  const std::vector<std::string>& labels() const { return vocabulary().labels; }

  /// The class of each row. Throws UnknownSymbolError for a label that the training data do not have.
  std::vector<int64_t> classes(const LabelledTexts& rows) const {
    std::vector<int64_t> result;
    for (const auto& label : rows.labels) {
      const auto found = std::lower_bound(labels().begin(), labels().end(), label);
      if (found == labels().end() || *found != label) {
        throw UnknownSymbolError(
            fmt::format("the label '{}' does not occur in the training data", excerpt(label)));
      }
      result.push_back(found - labels().begin());
    }
    return result;
  }

  /// The rows of samples: `inputs`, or the first rows of the validation data.
  LabelledTexts rows_to_show(const std::vector<std::string>& inputs) const {
    constexpr size_t n_samples = 5;
    if (!inputs.empty()) return {.texts = inputs, .labels = {}};
    auto rows = read_labelled(experiment().data, Split::valid);
    rows.texts.resize(std::min(n_samples, rows.texts.size()));
    rows.labels.resize(rows.texts.size());
    return rows;
  }

  std::vector<Sample> as_samples(const LabelledTexts& rows, const std::vector<int64_t>& predicted) const {
    std::vector<Sample> samples;
    for (size_t i = 0; i < predicted.size(); ++i) {
      Sample sample{.input = rows.texts[i], .output = labels()[static_cast<size_t>(predicted[i])]};
      if (!rows.labels.empty()) sample.reference = rows.labels[i];
      samples.push_back(std::move(sample));
    }
    return samples;
  }
};

/// The number of rows in the first batches.
int64_t n_rows_of(BatchSource& source, int64_t n_batches) {
  int64_t n_rows = 0;
  for (int64_t i = 0; i < std::min(n_batches, source.n_batches(0)); ++i)
    n_rows += source.batch(0, i).n_rows();
  return n_rows;
}

std::vector<int64_t> to_vector(const torch::Tensor& tensor) {
  const auto cpu = tensor.to(torch::kCPU).contiguous();
  return {cpu.const_data_ptr<int64_t>(), cpu.const_data_ptr<int64_t>() + cpu.numel()};
}

/// Classifies with a head on the encoder's class token or the decoder's last token.
class ClassificationByHead final : public TextClassification {
 public:
  using TextClassification::TextClassification;

  ModelPurpose purpose() const override {
    return {.head = HeadKind::classification,
            .vocab_size = tokenizer().vocab_size(),
            .n_classes = static_cast<int64_t>(labels().size())};
  }

  Metrics evaluate(Model& model, Split split, const EvaluationOptions& options) override {
    ConfusionCounts counts(purpose().n_classes);
    const Score scored = score(model, batches(split), options, [&](const auto& logits, const auto& targets) {
      counts.add(logits.argmax(-1), targets);
    });
    counts.add_up(options);
    Metrics metrics = loss_metrics(scored);
    metrics["accuracy"] = counts.accuracy();
    metrics["f1"] = counts.macro_f1();
    return metrics;
  }

  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override {
    const InferenceScope scope(model);
    const auto rows = rows_to_show(inputs);
    BatchOptions one_batch;
    one_batch.batch_size = static_cast<int64_t>(rows.texts.size());
    one_batch.order = BatchOptions::Order::sequential;
    const auto source = make_batches(rows.texts, std::vector<int64_t>(rows.texts.size(), 0), one_batch);
    const auto batch = source->batch(0, 0).to(model.device());
    return as_samples(rows, to_vector(model.logits(model.features(batch)).argmax(-1)));
  }

 private:
  std::unique_ptr<BatchSource> open(Split split) override {
    const auto rows = read_labelled(experiment().data, split);
    return make_batches(rows.texts, classes(rows), batch_options(split));
  }

  std::unique_ptr<BatchSource> make_batches(const std::vector<std::string>& texts,
                                            std::vector<int64_t> classes, const BatchOptions& options) const {
    const auto& config = experiment();
    const auto position =
        shape_of(config.model) == FamilyShape::encoder ? ClassPosition::first : ClassPosition::last;
    return classification_batches(tokenize(texts, tokenizer(), RowEnding::bare), std::move(classes),
                                  config.data.sequence_length, position, tokenizer().special(), options);
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
            .start_token = tokenizer().special().bos};
  }

  Metrics evaluate(Model& model, Split split, const EvaluationOptions& options) override {
    Metrics metrics = loss_metrics(score(model, batches(split), options));
    const auto rows = read_labelled(experiment().data, split);
    auto n_rows = static_cast<int64_t>(rows.texts.size());
    if (options.max_batches) n_rows = n_rows_of(batches(split), *options.max_batches);
    const int64_t begin = n_rows * options.rank() / options.n_processes(),
                  end = n_rows * (options.rank() + 1) / options.n_processes();
    const auto predicted = predict(model, rows, begin, end);
    ConfusionCounts counts(static_cast<int64_t>(labels().size()));
    counts.add(torch::tensor(predicted, torch::kLong),
               torch::tensor(classes(rows), torch::kLong).slice(/*dim=*/0, begin, end));
    counts.add_up(options);
    metrics["accuracy"] = counts.accuracy();
    metrics["f1"] = counts.macro_f1();
    return metrics;
  }

  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override {
    const auto rows = rows_to_show(inputs);
    return as_samples(rows, predict(model, rows, 0, static_cast<int64_t>(rows.texts.size())));
  }

 private:
  std::unique_ptr<BatchSource> open(Split split) override {
    const auto rows = read_labelled(experiment().data, split);
    classes(rows);  // an unknown label is an error here too
    const int64_t length = experiment().data.sequence_length;
    return text_to_text_batches(tokenize(rows.texts, tokenizer(), RowEnding::bare),
                                tokenize(rows.labels, tokenizer(), RowEnding::bare), length, length,
                                PairLayout::two_sides, tokenizer().special(), batch_options(split));
  }

  /// The predicted classes of the rows from `first` up to `end`.
  std::vector<int64_t> predict(Model& model, const LabelledTexts& rows, int64_t first, int64_t end) const {
    std::vector<TokenIds> names;
    for (const auto& label : labels()) names.push_back(tokenizer().encode(label));
    const LabelLikelihood likelihood(model, tokenizer().special(), names, experiment().data.sequence_length);
    constexpr int64_t at_once = 16;
    std::vector<int64_t> predicted;
    for (int64_t begin = first; begin < end; begin += at_once) {
      std::vector<TokenIds> sources;
      for (int64_t i = begin; i < std::min(begin + at_once, end); ++i)
        sources.push_back(tokenizer().encode(rows.texts[static_cast<size_t>(i)]));
      const auto best = to_vector(likelihood(std::move(sources)).argmax(1));
      predicted.insert(predicted.end(), best.begin(), best.end());
    }
    return predicted;
  }
};

std::unique_ptr<Task> make_text_classification(const Experiment& experiment, Vocabulary vocabulary) {
  const bool as_text = shape_of(experiment.model) == FamilyShape::encoder_decoder;
  if (!vocabulary.tokenizer || vocabulary.labels.empty()) {
    const auto rows = read_labelled(experiment.data, Split::train);
    vocabulary.labels = rows.labels;
    std::sort(vocabulary.labels.begin(), vocabulary.labels.end());
    vocabulary.labels.erase(std::unique(vocabulary.labels.begin(), vocabulary.labels.end()),
                            vocabulary.labels.end());
    // An encoder-decoder needs the tokens of the labels, because it writes them. The other families have the
    // same tokens, so that the families are comparable.
    if (!vocabulary.tokenizer) {
      vocabulary.tokenizer = make_tokenizer_for(experiment.data.tokenizer, SpecialTokenSet::all,
                                                {&rows.texts, &vocabulary.labels});
    }
  }
  if (as_text) return std::make_unique<ClassificationByText>(experiment, std::move(vocabulary));
  return std::make_unique<ClassificationByHead>(experiment, std::move(vocabulary));
}

void validate_text_classification(const Experiment& experiment, const Complain& complain) {
  require_shape(experiment, {FamilyShape::encoder, FamilyShape::decoder, FamilyShape::encoder_decoder},
                "encoder, decoder or encoder_decoder", complain);
  require_positions(experiment, "data.sequence_length", experiment.data.sequence_length, complain);
}

}  // namespace

TaskType text_classification() {
  const Metric accuracy{.key = "accuracy", .label = "accuracy", .better = Better::higher, .percent = true};
  TaskType type;
  type.name = "text_classification";
  type.doc = "The class of a text.";
  type.best_by = {accuracy};
  type.comparison = accuracy;
  type.needs = VocabularyNeeds::tokenizer_and_labels;
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

// Pairs of lines: the model reads one and writes the other. The model is an encoder-decoder, or a decoder
// that reads and writes in one sequence.

#include <algorithm>
#include <array>
#include <numbers>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "models/families/families.h"
#include "tasks/evaluation.h"
#include "tasks/examples.h"
#include "tasks/library_tasks.h"
#include "tasks/metrics/text_metrics.h"
#include "tasks/task_checks.h"
#include "tasks/text/text_tasks.h"
#include "tasks/text/translation.h"
#include "text/batches/text_batches.h"
#include "text/text_rows.h"
#include "tokenizers/tokenize.h"

namespace zoo {
namespace {

class TextToText final : public Task {
 public:
  TextToText(const Experiment& experiment, Vocabulary vocabulary, RowsBySplit<ParallelTexts> pairs)
      : Task(experiment, std::move(vocabulary)), pairs_(std::move(pairs)) {}

  ModelPurpose purpose() const override {
    return {.head = HeadKind::language_modeling,
            .prompt = PromptUse::answered,
            .vocab_size = tokenizer().vocab_size(),
            .start_token = decoder_start(tokenizer().special())};
  }

  /// Includes bits per byte of the target, which is comparable between tokenizers, unlike the loss per token.
  /// If bleu is wanted, the first process alone translates the whole split.
  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override {
    ExampleRecorder examples(options);
    Metrics metrics = loss_metrics(score(model, batches(split), examples.options()));
    if (examples.is_wanted()) {
      examples.finish_rows();
      name_pairs(examples.examples(), split);
    }
    const double bytes = bytes_per_target_[static_cast<size_t>(split)];
    if (bytes > 0) metrics[bits_key(tokenizer())] = metrics.at("loss") / std::numbers::ln2 / bytes;
    if (options.wanted == "bleu") {
      const auto bleu = torch::zeros({}, torch::kDouble);
      if (options.rank() == 0) {
        const auto translations = translate(model, *this, split, {.generation = experiment().generation});
        bleu.fill_(corpus_bleu(translations.outputs, {translations.references}));
      }
      sum_over_processes(options, bleu);
      metrics["bleu"] = bleu.item<double>();
    }
    return metrics;
  }

  /// Translates the inputs, or the first pairs of the validation data.
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override {
    constexpr size_t n_samples = 4;
    ParallelTexts pairs;
    if (inputs.empty()) {
      pairs = parallel_texts(experiment().data).take(Split::valid);
      pairs.source.resize(std::min(n_samples, pairs.source.size()));
    } else {
      pairs.source = inputs;
    }
    GenerationConfig greedy = experiment().generation;
    greedy.beam = 1;
    const auto outputs = translate(model, *this, pairs.source, {.generation = greedy});
    std::vector<Sample> result;
    for (size_t i = 0; i < outputs.size(); ++i) {
      result.push_back({.input = pairs.source[i], .output = outputs[i]});
      if (!pairs.target.empty()) result.back().reference = pairs.target[i];
    }
    return result;
  }

 private:
  void name_pairs(std::vector<ExampleScore>& examples, Split split) const {
    const auto pairs = parallel_texts(experiment().data).take(split);
    const auto& bytes = bytes_of_rows_[static_cast<size_t>(split)];
    for (size_t i = 0; i < examples.size(); ++i) {
      examples[i].input = pairs.source[i];
      examples[i].target = pairs.target[i];
      examples[i].bytes = bytes.at(i);
    }
  }

  std::unique_ptr<BatchSource> open(Split split) override {
    const auto& data = experiment().data;
    const auto pairs = pairs_.take(split);
    const auto target = tokenize(pairs.target, tokenizer(), RowEnding::bare);
    const int64_t target_length = data.target_length.value_or(data.sequence_length);
    double bytes = 0, targets = 0;
    auto& bytes_of_rows = bytes_of_rows_[static_cast<size_t>(split)];
    bytes_of_rows.clear();
    for (int64_t i = 0; i < target.n_rows(); ++i) {
      const int64_t n = target.row_length(i);
      const bool whole = n < target_length;
      const int64_t begin = target.row_begin(i), kept = std::min(n, target_length - 1);  // without eos
      const auto text = whole ? pairs.target[static_cast<size_t>(i)]
                              : tokenizer().decode(target.slice(begin, begin + kept));
      const auto size = predicted_bytes(tokenizer(), target, begin, begin + kept, text.size());
      bytes_of_rows.push_back(static_cast<int64_t>(size) + 1);  // with its line end
      bytes += static_cast<double>(bytes_of_rows.back());
      targets += static_cast<double>(kept + 1);
    }
    bytes_per_target_[static_cast<size_t>(split)] = targets > 0 ? bytes / targets : 0;
    const auto source = tokenize(pairs.source, tokenizer(), RowEnding::bare);
    // One more for eos.
    add_notes(notes_on_cut(n_longer_than(data.sequence_length - 1, source), source.n_rows(), "sources", split,
                           "data.sequence_length", data.sequence_length));
    add_notes(notes_on_cut(n_longer_than(target_length - 1, target), target.n_rows(), "targets", split,
                           "data.target_length", target_length));
    const bool alone = shape_of(experiment().model) == FamilyShape::decoder;
    return text_to_text_batches(source, target, data.sequence_length, target_length,
                                alone ? PairLayout::one_stream : PairLayout::two_sides, tokenizer().special(),
                                batch_options(split));
  }

  RowsBySplit<ParallelTexts> pairs_;
  std::array<double, 3> bytes_per_target_{};             // by Split
  std::array<std::vector<int64_t>, 3> bytes_of_rows_{};  // by Split: of the targets that the model predicts
};

std::unique_ptr<Task> make_text_to_text(const Experiment& experiment, Vocabulary vocabulary) {
  auto rows = parallel_texts(experiment.data);
  if (!vocabulary.tokenizer) {
    const auto& pairs = rows.of(Split::train);
    vocabulary.tokenizer = make_tokenizer_for(experiment.data.tokenizer, SpecialTokenSet::all,
                                              reader_of({&pairs.source, &pairs.target}));
  }
  return std::make_unique<TextToText>(experiment, std::move(vocabulary), std::move(rows));
}

void validate_text_to_text(const Experiment& experiment, const Complain& complain) {
  require_shape(experiment, {FamilyShape::decoder, FamilyShape::encoder_decoder},
                "decoder or encoder_decoder", complain);
  const auto& data = experiment.data;
  require_positions(experiment, "data.sequence_length", data.sequence_length, complain);
  if (data.target_length) require_positions(experiment, "data.target_length", *data.target_length, complain);
  const int64_t both = data.sequence_length + data.target_length.value_or(data.sequence_length);
  if (shape_of(experiment.model) == FamilyShape::decoder && both > experiment.model.max_positions) {
    complain("model.max_positions",
             fmt::format("{} is less than {}: a decoder reads source and target in one sequence",
                         experiment.model.max_positions, both));
  }
}

}  // namespace

TaskType text_to_text() {
  TaskType type;
  type.name = "text_to_text";
  type.doc = "One line of text from another, such as its translation.";
  type.best_by = {{.key = "bleu", .label = "BLEU", .better = Better::higher}};
  type.comparison = {.key = "bits_per_byte", .label = "bits per byte of the target"};
  type.lossy_comparison = {.key = "bits_per_decoded_byte",
                           .label = "bits per decoded byte of the target",
                           .other_key = "bits_per_byte"};
  type.predicts = PredictionKind::answers;
  type.search = UsualSearch::beams;
  type.make = make_text_to_text;
  type.validate = validate_text_to_text;
  type.purpose = [](const Experiment&, int64_t vocab_size) -> std::optional<ModelPurpose> {
    return ModelPurpose{.head = HeadKind::language_modeling,
                        .prompt = PromptUse::answered,
                        .vocab_size = vocab_size,
                        .start_token = 0};
  };
  type.layout = [](const Experiment& experiment) {
    return shape_of(experiment.model) == FamilyShape::decoder ? TextLayout::question_and_answer
                                                              : TextLayout::source_and_target;
  };
  return type;
}

}  // namespace zoo

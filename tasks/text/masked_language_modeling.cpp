// Predicts hidden tokens from the tokens on both sides.

#include <algorithm>
#include <span>

#include <fmt/format.h>
#include <torch/types.h>

#include "generation/fill_mask.h"
#include "models/inference_scope.h"
#include "tasks/evaluation.h"
#include "tasks/examples.h"
#include "tasks/library_tasks.h"
#include "tasks/task_checks.h"
#include "tasks/text/text_tasks.h"
#include "text/batches/text_batches.h"
#include "text/corpus.h"
#include "text/token_streams.h"

namespace zoo {
namespace {

class MaskedLanguageModeling final : public Task {
 public:
  MaskedLanguageModeling(const Experiment& experiment, Vocabulary vocabulary, Corpus corpus)
      : Task(experiment, std::move(vocabulary)), corpus_(std::move(corpus)) {}

  std::string hash_of_data() const override { return corpus_.hash_of_data(); }

  ModelPurpose purpose() const override {
    return {.head = HeadKind::masked_language_modeling, .vocab_size = tokenizer().vocab_size()};
  }

  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override {
    auto right = torch::zeros({}, torch::dtype(torch::kLong).device(model.device()));
    ExampleRecorder examples(options);
    // A foreign model's table may have rows that are no tokens.
    const auto name = [&](int64_t id) {
      return id < tokenizer().vocab_size() ? shown_alone(tokenizer(), id) : fmt::format("<{}>", id);
    };
    const auto look = [&](const torch::Tensor& logits, const torch::Tensor& targets) {
      const auto best = logits.argmax(-1);
      right += (best == targets).sum();
      examples.add_classes(best, targets, name);
    };
    const Score scored = score(model, batches(split), examples.options(), look);
    examples.finish_rows();
    if (examples.is_wanted()) name_windows(examples, split);
    Metrics metrics = loss_metrics(scored);
    right = right.to(torch::kCPU);
    sum_over_processes(options, right);
    metrics["accuracy"] = static_cast<double>(right.item<int64_t>()) / static_cast<double>(scored.targets);
    return metrics;
  }

  /// Fills the masks of the inputs, or of the first window of the validation text.
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override {
    if (inputs.empty()) return {first_window(model)};
    std::vector<Sample> result;
    const int64_t length = experiment().data.sequence_length;
    for (const auto& input : inputs) {
      const auto filled = fill_masks(model, tokenizer(), input, {.candidates = 1, .max_length = length});
      result.push_back({.input = input, .output = filled.outputs.front().text});
    }
    return result;
  }

 private:
  /// A window of the text with <mask> in the place of each token that is to be found.
  std::string with_masks(const TokenIds& window, const std::vector<int64_t>& positions) const {
    std::string text;
    size_t shown = 0;  // number of tokens that are shown already
    for (const int64_t position : positions) {
      const auto at = static_cast<size_t>(position);
      text += tokenizer().decode(std::span(window).subspan(shown, at - shown)) + " <mask> ";
      shown = at + 1;
    }
    return text + tokenizer().decode(std::span(window).subspan(shown));
  }

  void name_windows(ExampleRecorder& recorder, Split split) {
    size_t n = 0;
    for_each_own_batch(batches(split), recorder.options(), [&](const Batch& batch) {
      const int64_t length = batch.input.length();
      std::vector<std::vector<int64_t>> positions(static_cast<size_t>(batch.n_rows()));
      for (const int64_t position : int64_values(batch.positions))
        positions[static_cast<size_t>(position / length)].push_back(position % length);
      const auto lengths = batch.input.row_lengths();
      for (size_t row = 0; row < positions.size(); ++row) {
        const auto ids = batch.input.ids[static_cast<int64_t>(row)].narrow(0, 0, lengths[row]);
        recorder.examples().at(n++).input = with_masks(int64_values(ids), positions[row]);
      }
    });
  }

  /// Shows predictions in brackets.
  Sample first_window(Model& model) {
    const InferenceScope scope(model);
    const auto batch = batches(Split::valid).batch(0, 0);
    // A foreign model's table may have rows that are no tokens.
    const auto logits = model.logits(model.features(model.on_device(batch)));
    const int64_t n_tokens = std::min(logits.size(-1), tokenizer().vocab_size());
    const auto guesses = logits.narrow(-1, 0, n_tokens).argmax(-1).to(torch::kCPU);
    const int64_t length = batch.input.length();
    const auto ids = batch.input.ids[0].contiguous();
    const TokenIds window(ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + length);

    Sample sample{.input = {}, .output = {}, .reference = ""};
    size_t shown = 0;  // number of tokens of the window that are shown already
    const auto show_until = [&](size_t end) {
      const auto text = tokenizer().decode(std::span(window).subspan(shown, end - shown));
      for (auto* const line : {&sample.input, &sample.output, &*sample.reference}) *line += text;
      shown = end;
    };
    for (int64_t i = 0; i < batch.n_targets(); ++i) {
      const int64_t position = batch.positions[i].item<int64_t>();
      if (position >= length) break;  // the next window
      show_until(static_cast<size_t>(position));
      sample.input += " <mask> ";
      sample.output += fmt::format(" [{}] ", shown_alone(tokenizer(), guesses[i].item<int64_t>()));
      *sample.reference += fmt::format(" [{}] ", shown_alone(tokenizer(), batch.targets[i].item<int64_t>()));
      ++shown;
    }
    show_until(window.size());
    return sample;
  }

  std::unique_ptr<BatchSource> open(Split split) override {
    const auto& data = experiment().data;
    auto stream = streams_.take(split, tokenizer());
    const MaskingOptions masking{
        .probability = data.mask_probability, .replace = data.mask_replace, .random = data.mask_random};
    return masked_language_modeling_batches(std::move(stream), data.sequence_length, tokenizer().special(),
                                            tokenizer().vocab_size(), masking, batch_options(split));
  }

  Corpus corpus_;
  TokenStreams streams_{corpus_};
};

std::unique_ptr<Task> make_masked_language_modeling(const Experiment& experiment, Vocabulary vocabulary) {
  Corpus corpus(experiment.data);
  if (!vocabulary.tokenizer) {
    vocabulary.tokenizer =
        make_tokenizer_for(experiment.data.tokenizer, SpecialTokenSet::all, corpus.reader(Split::train));
  }
  return std::make_unique<MaskedLanguageModeling>(experiment, std::move(vocabulary), std::move(corpus));
}

void validate_masked_language_modeling(const Experiment& experiment, const Complain& complain) {
  require_shape(experiment, {FamilyShape::encoder}, "encoder", complain);
  require_positions(experiment, "data.sequence_length", experiment.data.sequence_length, complain);
}

}  // namespace

TaskType masked_language_modeling() {
  TaskType type;
  type.name = "masked_language_modeling";
  type.doc = "The hidden tokens of a text.";
  type.best_by = {{.key = "accuracy", .label = "accuracy", .better = Better::higher, .percent = true}};
  type.comparison = {.key = "loss", .label = "loss in nats per hidden token"};
  type.rows = BatchRows::windows;
  type.make = make_masked_language_modeling;
  type.validate = validate_masked_language_modeling;
  type.purpose = [](const Experiment&, int64_t vocab_size) -> std::optional<ModelPurpose> {
    return ModelPurpose{.head = HeadKind::masked_language_modeling, .vocab_size = vocab_size};
  };
  type.layout = [](const Experiment&) { return TextLayout::cls_tokens_sep; };
  return type;
}

}  // namespace zoo

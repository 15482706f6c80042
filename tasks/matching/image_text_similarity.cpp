// Which texts fit a picture: classification by any labels, without training for them (Radford et al. 2021,
// section 3.1.2), and training on pictures with their texts.

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"
#include "data/images/image_batches.h"
#include "data/images/image_set.h"
#include "data/prefetch.h"
#include "models/comparing_model.h"
#include "models/families/pairs/dual_encoder.h"
#include "models/inference_scope.h"
#include "tasks/images/image_task.h"
#include "tasks/labels.h"
#include "tasks/library_tasks.h"
#include "tasks/matching/contrastive_loss.h"
#include "tasks/matching/retrieval.h"
#include "tasks/matching/text_rows.h"
#include "tasks/problem.h"
#include "tasks/task.h"
#include "tasks/task_checks.h"
#include "tasks/text/text_tasks.h"
#include "text/batches/padded_rows.h"

namespace zoo {
namespace {

/// The keys of the task, beside `type: image_text_similarity`.
struct ImageTextSimilarityConfig {
  std::string text_template = "{}";
};
void describe(ConfigVisitor& v, ImageTextSimilarityConfig& c) {
  v.field("template", c.text_template,
          "What is read in place of each text, which stands for the {}: `a photo of a {}.`; for names of "
          "classes.");
}

/// The template with the label in each of its places.
std::string filled(std::string_view text, std::string_view label) {
  constexpr std::string_view place = "{}";
  std::string result;
  for (size_t at = text.find(place); at != text.npos; at = text.find(place)) {
    result += text.substr(0, at);
    result += label;
    text.remove_prefix(at + place.size());
  }
  return result + std::string(text);
}

/// Images with the tokens of their texts: those of the batches of images, whose targets are their numbers.
class PairBatches final : public BatchSource {
 public:
  PairBatches(std::unique_ptr<BatchSource> images, std::vector<std::vector<int64_t>> texts,
              const Tokenizer& tokenizer)
      : images_(std::move(images)), texts_(std::move(texts)), tokenizer_(tokenizer) {}

  int64_t n_batches(int64_t epoch) override { return images_->n_batches(epoch); }
  Batch batch(int64_t epoch, int64_t index) override {
    auto batch = images_->batch(epoch, index);
    batch.input = text_batch(tokenizer_, rows_at(texts_, int64_values(batch.targets)));
    batch.targets = torch::Tensor();
    return batch;
  }
  void expect(int64_t epoch, int64_t index) override { images_->expect(epoch, index); }
  void use_share(int64_t index, int64_t n_parts) override { images_->use_share(index, n_parts); }

 private:
  std::unique_ptr<BatchSource> images_;
  std::vector<std::vector<int64_t>> texts_;
  const Tokenizer& tokenizer_;
};

class ImageTextSimilarity final : public Task {
 public:
  ImageTextSimilarity(const Experiment& experiment, Vocabulary vocabulary, RowsBySplit<LabelledImages> images,
                      const std::vector<std::string>& notes)
      : Task(experiment, std::move(vocabulary)), images_(std::move(images)) {
    add_notes(notes);
  }

  ModelPurpose purpose() const override {
    auto purpose = image_purpose(experiment(), HeadKind::none, 0);
    purpose.vocab_size = tokenizer().vocab_size();
    purpose.pad_token = std::max<int64_t>(tokenizer().special().pad, 0);
    return purpose;
  }

  std::vector<Prediction> predict(Model& model, const std::vector<std::string>& inputs,
                                  const PredictOptions& options) override;
  ImageInputs read_inputs(const std::vector<std::string>& files) const override;
  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override;

 private:
  std::unique_ptr<BatchSource> open(Split split) override;
  std::shared_ptr<const Objective> own_objective(const ObjectiveContext&) const override {
    return std::make_shared<ContrastiveLoss>();
  }
  const std::string& usual_template() const {
    return experiment().task.as<ImageTextSimilarityConfig>().text_template;
  }

  /// (N, W): of texts.
  torch::Tensor vectors_of(ComparingModel& comparing, Model& model, const PredictOptions& options) const;

  RowsBySplit<LabelledImages> images_;
  std::array<std::vector<std::string>, 3> texts_;  // of the splits that are open, in their order
};

std::unique_ptr<BatchSource> ImageTextSimilarity::open(Split split) {
  auto images = images_.take(split);
  if (split == Split::train) add_notes(images.notes());
  auto& texts = texts_[static_cast<size_t>(split)] = images.labels();
  const int64_t most = experiment().data.sequence_length;
  std::vector<std::vector<int64_t>> rows;
  for (const auto& text : texts) rows.push_back(text_row(tokenizer(), filled(usual_template(), text), most));
  const auto numbers = torch::arange(images.size(), torch::kInt64);
  auto batches = image_batches(std::move(images), numbers, experiment().data.images, *vocabulary().pixels,
                               /*tokens_per_image=*/1, batch_options(split));
  return prefetched(std::make_unique<PairBatches>(std::move(batches), std::move(rows), tokenizer()));
}

Metrics ImageTextSimilarity::measure(Model& model, Split split, const EvaluationOptions& options) {
  if (options.n_processes() > 1)
    throw UsageError("pictures and texts are compared by one process: evaluate with one");
  auto& comparing = *comparing_of(model);
  const InferenceScope scope(model);
  std::vector<torch::Tensor> images, texts;
  double loss = 0;
  for_each_own_batch(batches(split), options, [&](const Batch& read) {
    const auto batch = model.on_device(read);
    images.push_back(comparing.image_vectors(batch));
    texts.push_back(comparing.text_vectors(batch));
    loss += contrastive_loss(comparing.scores(images.back(), texts.back()), comparing.pair_scores())
                .item<double>();
  });
  const auto all_images = torch::cat(images), all_texts = torch::cat(texts);
  const int64_t n = all_images.size(0);
  auto metrics = retrieval_metrics(comparing, all_images, all_texts, texts_[static_cast<size_t>(split)]);
  metrics.insert({{"loss", loss / static_cast<double>(n)}, {"images", static_cast<double>(n)}});
  return metrics;
}

torch::Tensor ImageTextSimilarity::vectors_of(ComparingModel& comparing, Model& model,
                                              const PredictOptions& options) const {
  constexpr size_t at_once = 64;
  const auto text = options.label_template.value_or(usual_template());
  if (text.find("{}") == text.npos)
    throw UsageError(fmt::format("label_template: '{}' has no {{}} for the label", excerpt(text)));
  std::vector<torch::Tensor> vectors;
  for (size_t begin = 0; begin < options.labels.size(); begin += at_once) {
    std::vector<std::vector<int64_t>> rows;
    for (size_t i = begin; i < std::min(options.labels.size(), begin + at_once); ++i)
      rows.push_back(
          text_row(tokenizer(), filled(text, options.labels[i]), experiment().data.sequence_length));
    Batch batch;
    batch.input = text_batch(tokenizer(), rows);
    vectors.push_back(comparing.text_vectors(model.on_device(batch)));
  }
  return torch::cat(vectors);
}

ImageInputs ImageTextSimilarity::read_inputs(const std::vector<std::string>& files) const {
  return read_images(files, experiment().data.images, *vocabulary().pixels);
}

std::vector<Prediction> ImageTextSimilarity::predict(Model& model, const std::vector<std::string>& inputs,
                                                     const PredictOptions& options) {
  if (options.labels.empty()) return unanswered(inputs);
  auto& comparing = *comparing_of(model);
  const auto problem =
      comparing.pair_scores() == PairScores::softmax ? Problem::single_label : Problem::multi_label;
  const InferenceScope scope(model);
  const auto texts = vectors_of(comparing, model, options);
  const auto answer = [&](const Batch& batch, std::span<Prediction> predictions) {
    const auto images = comparing.image_vectors(model.on_device(batch));
    const auto rows = activated(comparing.scores(images, texts), problem);
    for (size_t i = 0; i < predictions.size(); ++i)
      predictions[i].answer = PredictedLabels{ranked(rows[static_cast<int64_t>(i)], options.labels), problem};
  };
  return predict_from_images(inputs, experiment().data.images, *vocabulary().pixels, options, answer);
}

std::unique_ptr<Task> make_image_text_similarity(const Experiment& experiment, Vocabulary vocabulary) {
  std::vector<std::string> notes;
  auto data = captioned_images(experiment.data);
  if (!vocabulary.tokenizer || !vocabulary.pixels) {
    const auto& images = data.of(Split::train);
    if (!vocabulary.tokenizer) {
      const auto texts = images.labels();
      vocabulary.tokenizer =
          make_tokenizer_for(experiment.data.tokenizer, SpecialTokenSet::all, reader_of({&texts}));
    }
    if (!vocabulary.pixels) {
      vocabulary.pixels =
          measure_training_pixels(images.size(), [&](int64_t index) { return images.image(index); }, notes);
    }
  }
  return std::make_unique<ImageTextSimilarity>(experiment, std::move(vocabulary), std::move(data), notes);
}

void validate_image_text_similarity(const Experiment& experiment, const Complain& complain) {
  if (!compares_pictures(experiment.model))
    return complain("model.architecture", "must be dual_encoder for this task");
  require_positions(experiment, "data.sequence_length", experiment.data.sequence_length, complain);
  validate_without_boxes(experiment.data.images, complain_under("data.images", complain));
  if (experiment.data.images.augment.mixes())
    complain("data.images.augment",
             "mixes images, and their texts cannot be mixed: leave out mixup and cutmix");
  if (experiment.training.label_smoothing > 0)
    complain("training.label_smoothing", "has no effect on pairs of pictures and texts: leave it out");
  const auto& text = experiment.task.as<ImageTextSimilarityConfig>().text_template;
  if (text.find("{}") == text.npos) complain("task.template", "has no {} for the text");
  validate_fit(experiment, complain);
}

}  // namespace

TaskType image_text_similarity() {
  const auto recall = [](const char* key, const char* label) {
    return Metric{.key = key, .label = label, .better = Better::higher, .percent = true};
  };
  TaskType type;
  type.name = "image_text_similarity";
  type.doc = "Which texts fit a picture, with an encoder of pictures and one of texts.";
  type.needs = VocabularyNeeds::tokenizer_and_pixels;
  type.unit = "image";
  type.predicts_from = PredictionInput::image_file;
  type.labels = LabelSource::options;
  type.make_options = options_of<ImageTextSimilarityConfig>();
  type.best_by = {recall("text_recall_at_1", "text recall@1"), recall("text_recall_at_5", "text recall@5"),
                  recall("image_recall_at_1", "image recall@1"),
                  recall("image_recall_at_5", "image recall@5")};
  type.make = make_image_text_similarity;
  type.validate = validate_image_text_similarity;
  type.purpose = [](const Experiment& experiment, int64_t vocab_size) -> std::optional<ModelPurpose> {
    auto purpose = image_purpose(experiment, HeadKind::none, 0);
    purpose.vocab_size = vocab_size;
    return purpose;
  };
  type.layout = [](const Experiment&) { return TextLayout::tokens_eos; };
  return type;
}

}  // namespace zoo

// Predicts the class of an image.

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"
#include "data/images/augment.h"
#include "data/images/image_batches.h"
#include "data/images/image_file.h"
#include "data/images/image_set.h"
#include "data/prefetch.h"
#include "generation/sampler.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "training/objectives/token_cross_entropy.h"
#include "training/tasks/evaluation.h"
#include "training/tasks/images/mixed_cross_entropy.h"
#include "training/tasks/library_tasks.h"
#include "training/tasks/task.h"
#include "training/tasks/task_checks.h"

namespace zoo {
namespace {

/// The keys of the task, beside `type: image_classification`.
struct ImageClassificationConfig {
  std::optional<int64_t> n_classes;
};
void describe(ConfigVisitor& v, ImageClassificationConfig& c) {
  v.field(
      "n_classes", c.n_classes,
      "Number of classes; default: as many as the training data have. With it, `zoo inspect` needs no data.",
      Limits::between(1, 1 << 20));
}

ImageShape input_shape(const ImageConfig& images) {
  return {.channels = images.channels, .height = images.size, .width = images.size};
}

class ImageClassification final : public Task {
 public:
  using Task::Task;

  ModelPurpose purpose() const override {
    return {.head = HeadKind::classification,
            .n_classes = std::ssize(labels()),
            .image = input_shape(experiment().data.images)};
  }

  Metrics evaluate(Model& model, Split split, const EvaluationOptions& options) override {
    constexpr int64_t k = 5;
    const int64_t n_classes = std::ssize(labels());
    ConfusionCounts counts(n_classes);
    auto in_top_k = torch::zeros({1}, torch::kLong);
    const Score scored = score(model, batches(split), options, [&](const auto& logits, const auto& targets) {
      counts.add(logits.argmax(-1), targets);
      const auto top = std::get<1>(logits.topk(std::min(k, n_classes), -1));
      in_top_k += (top == targets.unsqueeze(-1)).sum().to(torch::kCPU);
    });
    counts.finish(options);
    sum_over_processes(options, in_top_k);
    if (scored.targets == 0) throw DataError("there are no images to be scored");
    return {{"loss", scored.loss()},
            {"accuracy", counts.accuracy()},
            {"top_5_accuracy", in_top_k.item<double>() / static_cast<double>(scored.targets)},
            {"f1", counts.macro_f1()},
            {"images", static_cast<double>(scored.targets)}};
  }

  std::vector<Prediction> predict(Model& model, const std::vector<std::string>& inputs,
                                  const PredictOptions& options) override;
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override;

 private:
  const std::vector<std::string>& labels() const { return vocabulary().labels; }

  std::unique_ptr<BatchSource> open(Split split) override {
    auto images = read_images(experiment().data, split);
    auto classes = classes_of(images);
    return prefetched(
        image_batches(std::move(images), std::move(classes), experiment().data.images, *vocabulary().pixels,
                      input_length(experiment().model, purpose()).value_or(1), batch_options(split)));
  }

  std::shared_ptr<const Objective> own_objective(const ObjectiveContext& context) const override {
    if (!experiment().data.images.augment.mixes()) return Task::own_objective(context);
    return std::make_shared<MixedCrossEntropy>(context.label_smoothing);
  }

  /// The class of each image. Throws UnknownSymbolError for a label that the training data do not have.
  std::vector<int64_t> classes_of(const LabelledImages& images) const {
    std::vector<int64_t> classes;
    for (int64_t i = 0; i < images.size(); ++i) {
      const auto found = std::ranges::lower_bound(labels(), images.label(i));
      if (found == labels().end() || *found != images.label(i)) {
        throw UnknownSymbolError(
            fmt::format("the label '{}' does not occur in the training data", excerpt(images.label(i))));
      }
      classes.push_back(found - labels().begin());
    }
    return classes;
  }

  /// (N, C) double on the CPU: the probabilities of the classes.
  torch::Tensor probabilities(Model& model, const std::vector<Image>& images) const {
    const auto& config = experiment().data.images;
    const InferenceScope scope(model);
    auto inputs = torch::empty({std::ssize(images), config.channels, config.size, config.size});
    for (size_t i = 0; i < images.size(); ++i) {
      write_normalised(fitted(images[i], config.size), *vocabulary().pixels,
                       inputs[static_cast<int64_t>(i)].mutable_data_ptr<float>());
    }
    Batch batch;
    batch.fields = {{"images", inputs.to(model.device())}};
    const auto result = model.logits(model.features(batch)).to(torch::kCPU, torch::kDouble).softmax(1);
    if (result.isnan().any().item<bool>()) fail_not_a_number();
    return result;
  }

  /// The classes with their probabilities, the likeliest first.
  std::vector<LabelProbability> ranked(const torch::Tensor& row) const {
    std::vector<LabelProbability> result;
    for (size_t i = 0; i < labels().size(); ++i)
      result.push_back({labels()[i], row.const_data_ptr<double>()[i]});
    std::ranges::stable_sort(result, std::greater(), &LabelProbability::probability);
    return result;
  }
};

std::vector<Prediction> ImageClassification::predict(Model& model, const std::vector<std::string>& inputs,
                                                     const PredictOptions& options) {
  constexpr size_t at_once = 32;
  std::vector<Prediction> predictions;
  for (size_t begin = 0; begin < inputs.size(); begin += at_once) {
    std::vector<Image> images;
    for (size_t i = begin; i < std::min(begin + at_once, inputs.size()); ++i)
      images.push_back(fitted(read_image(inputs[i], Follow::everything, experiment().data.images.channels),
                              experiment().data.images.size));
    const auto rows = probabilities(model, images);
    for (int64_t i = 0; i < rows.size(0); ++i)
      predictions.push_back({.input = inputs[begin + static_cast<size_t>(i)], .labels = ranked(rows[i])});
    if (options.on_progress) options.on_progress(std::ssize(predictions), std::ssize(inputs));
  }
  return predictions;
}

std::vector<Sample> ImageClassification::samples(Model& model, const std::vector<std::string>& inputs) {
  std::vector<Sample> result;
  if (!inputs.empty()) {
    for (const auto& prediction : predict(model, inputs, {}))
      result.push_back({.input = prediction.input, .output = prediction.labels.front().label});
    return result;
  }
  constexpr int64_t n_samples = 10;
  const auto set = read_images(experiment().data, Split::valid);
  const int64_t n = std::min(n_samples, set.size());
  std::vector<Image> images;
  for (int64_t i = 0; i < n; ++i) images.push_back(set.image(i));
  const auto rows = probabilities(model, images);
  for (int64_t i = 0; i < n; ++i) {
    result.push_back({.input = fmt::format("validation image {}", i + 1),
                      .output = ranked(rows[i]).front().label,
                      .reference = set.label(i)});
  }
  return result;
}

std::unique_ptr<Task> make_image_classification(const Experiment& experiment, Vocabulary vocabulary) {
  if (vocabulary.labels.empty() || !vocabulary.pixels) {
    const auto images = read_images(experiment.data, Split::train);
    if (vocabulary.labels.empty()) {
      for (int64_t i = 0; i < images.size(); ++i) vocabulary.labels.push_back(images.label(i));
      std::ranges::sort(vocabulary.labels);
      const auto repeated = std::ranges::unique(vocabulary.labels);
      vocabulary.labels.erase(repeated.begin(), repeated.end());
    }
    if (!vocabulary.pixels) vocabulary.pixels = measure_pixels(images);
  }
  const auto wanted = experiment.task.as<ImageClassificationConfig>().n_classes;
  if (wanted && *wanted != std::ssize(vocabulary.labels)) {
    throw DataError(fmt::format("the training data have {} classes, but task.n_classes is {}: leave it out",
                                vocabulary.labels.size(), *wanted));
  }
  return std::make_unique<ImageClassification>(experiment, std::move(vocabulary));
}

void validate_image_classification(const Experiment& experiment, const Complain& complain) {
  require_shape(experiment, {FamilyShape::other}, "vit or another family that reads images", complain);
  if (experiment.data.images.augment.mixes() && experiment.training.objective.type != "task") {
    complain("data.images.augment",
             fmt::format("mixes images, which training.objective {} does not understand",
                         experiment.training.objective.type));
  }
}

}  // namespace

TaskType image_classification() {
  const Metric accuracy{.key = "accuracy", .label = "accuracy", .better = Better::higher, .percent = true};
  TaskType type;
  type.name = "image_classification";
  type.doc = "The class of an image.";
  type.make_options = options_of<ImageClassificationConfig>();
  type.best_by = {
      accuracy,
      {.key = "top_5_accuracy", .label = "top-5 accuracy", .better = Better::higher, .percent = true}};
  type.comparison = accuracy;
  type.needs = VocabularyNeeds::labels_and_pixels;
  type.predicts_from = PredictionInput::image_file;
  type.make = make_image_classification;
  type.validate = validate_image_classification;
  type.purpose = [](const Experiment& experiment, int64_t) -> std::optional<ModelPurpose> {
    const auto n_classes = experiment.task.as<ImageClassificationConfig>().n_classes;
    if (!n_classes) return std::nullopt;
    return ModelPurpose{.head = HeadKind::classification,
                        .n_classes = *n_classes,
                        .image = input_shape(experiment.data.images)};
  };
  return type;
}

}  // namespace zoo

// Predicts the class of an image, its labels, or a number.

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/images/augment.h"
#include "data/images/image_batches.h"
#include "data/images/image_set.h"
#include "data/prefetch.h"
#include "models/inference_scope.h"
#include "models/model.h"
#include "tasks/evaluation.h"
#include "tasks/examples.h"
#include "tasks/images/image_task.h"
#include "tasks/images/mixed_cross_entropy.h"
#include "tasks/labels.h"
#include "tasks/library_tasks.h"
#include "tasks/problem.h"
#include "tasks/task.h"
#include "tasks/task_checks.h"

namespace zoo {
namespace {

/// The keys of the task, beside `type: image_classification`.
struct ImageClassificationConfig {
  std::optional<int64_t> n_classes;
  Problem problem = Problem::single_label;
};
void describe(ConfigVisitor& v, ImageClassificationConfig& c) {
  describe_n_classes(v, c.n_classes);
  describe_problem(v, c.problem);
}

class ImageClassification final : public Task {
 public:
  ImageClassification(const Experiment& experiment, Vocabulary vocabulary, RowsBySplit<LabelledImages> images,
                      const std::vector<std::string>& notes)
      : Task(experiment, std::move(vocabulary)), images_(std::move(images)) {
    add_notes(notes);
  }

  ModelPurpose purpose() const override {
    return image_purpose(experiment(), HeadKind::classification, std::ssize(labels()));
  }

  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override {
    if (problem() != Problem::single_label) {
      auto metrics = evaluate_problem(model, batches(split), problem(), {.labels = labels()}, options);
      name_inputs(split, options);
      return metrics;
    }
    constexpr int64_t k = 5;
    const int64_t n_classes = std::ssize(labels());
    ConfusionCounts counts(n_classes);
    auto in_top_k = torch::zeros({1}, torch::kLong);
    ExampleRecorder examples(options);
    const auto look = [&](const torch::Tensor& logits, const torch::Tensor& targets) {
      const auto best = logits.argmax(-1);
      counts.add(best, targets);
      examples.add_classes(best, targets, named_by(labels()));
      const auto top = std::get<1>(logits.topk(std::min(k, n_classes), -1));
      in_top_k += (top == targets.unsqueeze(-1)).sum().to(torch::kCPU);
    };
    const Score scored = score(model, batches(split), examples.options(), look);
    counts.finish(options);
    examples.finish_rows();
    name_inputs(split, options);
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
  ImageInputs read_inputs(const std::vector<std::string>& files) const override;

 private:
  const std::vector<std::string>& labels() const { return vocabulary().labels; }
  Problem problem() const { return problem_; }

  /// Sets the inputs of EvaluationOptions::examples, if they are wanted.
  void name_inputs(Split split, const EvaluationOptions& options) {
    if (!options.examples) return;
    const auto images = images_.take(split);
    for (size_t i = 0; i < options.examples->size(); ++i) {
      auto& example = options.examples->at(i);
      example.input = images.name(static_cast<int64_t>(i));
      if (!example.target) example.target = images.label(static_cast<int64_t>(i));
    }
  }

  std::unique_ptr<BatchSource> open(Split split) override {
    auto images = images_.take(split);
    if (split == Split::train) add_notes(images.notes());
    auto targets = targets_of(images.labels(), labels(), problem(), experiment().data);
    if (split == Split::train && problem() == Problem::regression) set_mean_target(targets);
    return prefetched(image_batches(std::move(images), std::move(targets), experiment().data.images,
                                    *vocabulary().pixels,
                                    /*tokens_per_image=*/1, batch_options(split)));
  }

  std::shared_ptr<const Objective> own_objective(const ObjectiveContext& context) const override {
    // Targets of floats are mixed themselves.
    if (!experiment().data.images.augment.mixes() || problem() != Problem::single_label)
      return Task::own_objective(context);
    return std::make_shared<MixedCrossEntropy>(context.label_smoothing);
  }

  /// (N, C) as activated().
  torch::Tensor outputs(Model& model, const Batch& batch) const {
    const InferenceScope scope(model);
    return activated(model.logits(model.features(model.on_device(batch))), problem());
  }

  const Problem problem_ = problem_of(experiment());
  RowsBySplit<LabelledImages> images_;
};

ImageInputs ImageClassification::read_inputs(const std::vector<std::string>& files) const {
  return read_images(files, experiment().data.images, *vocabulary().pixels);
}

std::vector<Prediction> ImageClassification::predict(Model& model, const std::vector<std::string>& inputs,
                                                     const PredictOptions& options) {
  const auto answer = [&](const Batch& batch, std::span<Prediction> predictions) {
    const auto rows = outputs(model, batch);
    for (size_t i = 0; i < predictions.size(); ++i)
      predictions[i].answer = answer_from(rows[static_cast<int64_t>(i)], problem(), labels());
  };
  return predict_from_images(inputs, experiment().data.images, *vocabulary().pixels, options, answer);
}

std::vector<Sample> ImageClassification::samples(Model& model, const std::vector<std::string>& inputs) {
  std::vector<Sample> result;
  if (!inputs.empty()) {
    for (const auto& prediction : predict(model, inputs, {}))
      result.push_back({.input = prediction.input, .output = in_words(prediction)});
    return result;
  }
  constexpr int64_t n_samples = 10;
  const auto set = images_.take(Split::valid);
  const int64_t n = std::min(n_samples, set.size());
  const auto& config = experiment().data.images;
  std::vector<Image> images;
  for (int64_t i = 0; i < n; ++i) images.push_back(fitted(set.image(i), config));
  const auto rows = outputs(model, batch_of_images(images, config, *vocabulary().pixels));
  for (int64_t i = 0; i < n; ++i) {
    result.push_back({.input = fmt::format("validation image {}", i + 1),
                      .output = in_words({.input = {}, .answer = answer_from(rows[i], problem(), labels())}),
                      .reference = set.label(i)});
  }
  return result;
}

std::unique_ptr<Task> make_image_classification(const Experiment& experiment, Vocabulary vocabulary) {
  auto notes = notes_on_fit(experiment);
  const auto problem = problem_of(experiment);
  auto data = labelled_images(experiment.data, problem);
  if (vocabulary.labels.empty() || !vocabulary.pixels) {
    const auto& images = data.of(Split::train);
    if (vocabulary.labels.empty()) {
      auto fields = images.labels();
      // A label may stand only in the rows that are for validation.
      if (problem == Problem::multi_label && is_shared(experiment.data, Split::valid))
        std::ranges::move(data.of(Split::valid).labels(), std::back_inserter(fields));
      vocabulary.labels = label_names(fields, problem, experiment.data);
    }
    if (!vocabulary.pixels) {
      vocabulary.pixels =
          measure_training_pixels(images.size(), [&](int64_t index) { return images.image(index); }, notes);
    }
  }
  require_n_classes(experiment.task.as<ImageClassificationConfig>().n_classes, vocabulary);
  return std::make_unique<ImageClassification>(experiment, std::move(vocabulary), std::move(data), notes);
}

void validate_image_classification(const Experiment& experiment, const Complain& complain) {
  require_shape(experiment, {FamilyShape::other}, "vit or another family that reads images", complain);
  validate_without_boxes(experiment.data.images, complain_under("data.images", complain));
  validate_fit(experiment, complain);
  validate_problem(experiment, complain);
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
  type.doc = "The class of an image, its labels, or a number.";
  type.make_options = options_of<ImageClassificationConfig>();
  type.problem = problem_in<ImageClassificationConfig>;
  type.best_by = {
      accuracy,
      {.key = "top_5_accuracy", .label = "top-5 accuracy", .better = Better::higher, .percent = true}};
  std::ranges::move(metrics_of_problems(), std::back_inserter(type.best_by));
  type.comparison = accuracy;
  type.needs = VocabularyNeeds::labels_and_pixels;
  type.unit = "image";
  type.predicts_from = PredictionInput::image_file;
  type.make = make_image_classification;
  type.validate = validate_image_classification;
  type.purpose = [](const Experiment& experiment, int64_t) -> std::optional<ModelPurpose> {
    const auto n_classes = experiment.task.as<ImageClassificationConfig>().n_classes;
    if (!n_classes) return std::nullopt;
    return image_purpose(experiment, HeadKind::classification, *n_classes);
  };
  return type;
}

}  // namespace zoo

// Finds the objects of a picture: their classes and boxes.

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/images/annotated_image.h"
#include "data/images/annotated_images.h"
#include "data/images/detection_batches.h"
#include "data/images/image_file.h"
#include "data/prefetch.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "models/model.h"
#include "tasks/evaluation.h"
#include "tasks/examples.h"
#include "tasks/images/image_task.h"
#include "tasks/images/set_criterion.h"
#include "tasks/library_tasks.h"
#include "tasks/metrics/detection_metrics.h"
#include "tasks/task.h"
#include "tasks/task_checks.h"

namespace zoo {
namespace {

/// The keys of the task, beside `type: object_detection`.
struct ObjectDetectionConfig {
  std::optional<int64_t> n_classes;
  SetCriterionConfig criterion;
};
void describe(ConfigVisitor& v, ObjectDetectionConfig& c) {
  describe_n_classes(v, c.n_classes);
  describe(v, c.criterion);
}

const ObjectDetectionConfig& config_of(const Experiment& experiment) {
  return experiment.task.as<ObjectDetectionConfig>();
}

/// The objects that the queries of a batch have found, on the CPU.
struct QueryObjects {
  torch::Tensor scores;   // (B, Q) double: the probability of the likeliest class
  torch::Tensor classes;  // (B, Q) int64
  torch::Tensor boxes;    // (B, Q, 4) double: as in Detections
};

/// As post_process_object_detection() in transformers.
QueryObjects objects_of(const Detections& found) {
  const auto logits = found.logits.select(0, -1).to(torch::kCPU, torch::kDouble);
  const auto [scores, classes] = logits.softmax(-1).slice(/*dim=*/-1, 0, -1).max(-1);
  return {.scores = scores.contiguous(),
          .classes = classes.contiguous(),
          .boxes = found.boxes.select(0, -1).to(torch::kCPU, torch::kDouble).contiguous()};
}

/// A box given by shares of a picture's sides, in pixels.
Box in_pixels(const double* shares, const ImageShape& picture) {
  const auto width = static_cast<double>(picture.width), height = static_cast<double>(picture.height);
  return {.x = (shares[0] - shares[2] / 2) * width,
          .y = (shares[1] - shares[3] / 2) * height,
          .width = shares[2] * width,
          .height = shares[3] * height};
}

/// The part of a box within a picture, in pixels. A model may suggest more, which is neither shown nor
/// measured.
Box in_picture(const double* shares, const ImageShape& picture) {
  const auto box = in_pixels(shares, picture);
  const auto width = static_cast<double>(picture.width), height = static_cast<double>(picture.height);
  const double left = std::clamp(box.x, 0.0, width), top = std::clamp(box.y, 0.0, height);
  return {.x = left,
          .y = top,
          .width = std::clamp(box.x + box.width, left, width) - left,
          .height = std::clamp(box.y + box.height, top, height) - top};
}

class ObjectDetection final : public Task {
 public:
  ObjectDetection(const Experiment& experiment, Vocabulary vocabulary, RowsBySplit<AnnotatedImages> images,
                  const std::vector<std::string>& notes)
      : Task(experiment, std::move(vocabulary)), images_(std::move(images)) {
    add_notes(notes);
  }

  ModelPurpose purpose() const override {
    return image_purpose(experiment(), HeadKind::detection, std::ssize(labels()));
  }

  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override;
  std::vector<Prediction> predict(Model& model, const std::vector<std::string>& inputs,
                                  const PredictOptions& options) override;
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override;
  ImageInputs read_inputs(const std::vector<std::string>& files) const override;

 private:
  const std::vector<std::string>& labels() const { return vocabulary().labels; }

  /// The pictures of a split, read once.
  const std::shared_ptr<const AnnotatedImages>& pictures(Split split) {
    auto& set = sets_[static_cast<size_t>(split)];
    if (!set) set = std::make_shared<const AnnotatedImages>(images_.take(split));
    return set;
  }

  /// Adds an example for each picture of a batch.
  void add_examples(Model& model, const SetCriterion& criterion, const Batch& batch, Split split,
                    std::vector<ExampleScore>& examples);

  std::unique_ptr<BatchSource> open(Split split) override {
    return prefetched(detection_batches(pictures(split), experiment().data.images, *vocabulary().pixels,
                                        batch_options(split)));
  }

  std::shared_ptr<const Objective> own_objective(const ObjectiveContext&) const override {
    return std::make_shared<SetCriterion>(config_of(experiment()).criterion);
  }

  std::vector<LabelledBox> labelled(const QueryObjects& objects, const ImageShape& picture) const;
  ImageInputs input_of(const std::vector<Image>& pictures) const;
  Prediction predict_one(Model& model, const std::string& name, const ImageInputs& input) const;

  RowsBySplit<AnnotatedImages> images_;
  std::array<std::shared_ptr<const AnnotatedImages>, 3> sets_;  // by Split
};

/// Collects what was found in each picture of a set, over the processes that share an evaluation.
class FoundObjects {
 public:
  FoundObjects(int64_t n_pictures, int64_t n_queries)
      : rows_(torch::zeros({n_pictures, n_queries, kWidth}, torch::kDouble)),
        is_seen_(torch::zeros({n_pictures}, torch::kDouble)) {}

  /// numbers: (B) int64, the pictures of the batch.
  void add(const QueryObjects& objects, const torch::Tensor& numbers) {
    const auto classes = objects.classes.to(torch::kDouble).unsqueeze(2);
    rows_.index_copy_(0, numbers, torch::cat({objects.scores.unsqueeze(2), classes, objects.boxes}, 2));
    is_seen_.index_fill_(0, numbers, 1);
  }

  /// Collective.
  DetectionMetrics measure(const AnnotatedImages& pictures, const EvaluationOptions& options) {
    sum_over_processes(options, rows_);
    sum_over_processes(options, is_seen_);
    std::vector<AnnotatedObject> marked;
    std::vector<DetectedObject> detected;
    for (int64_t i = 0; i < rows_.size(0); ++i) {
      if (is_seen_[i].item<double>() == 0) continue;
      const auto& objects = pictures.objects(i);
      marked.insert(marked.end(), objects.begin(), objects.end());
      const double* numbers = rows_[i].const_data_ptr<double>();
      for (int64_t q = 0; q < rows_.size(1); ++q, numbers += kWidth) {
        detected.push_back({.image = i,
                            .category = static_cast<int64_t>(numbers[1]),
                            .box = in_picture(numbers + 2, pictures.shape(i)),
                            .score = numbers[0]});
      }
    }
    return detection_metrics(marked, detected);
  }

 private:
  static constexpr int64_t kWidth = 6;  // score, class, box

  torch::Tensor rows_;     // (N, Q, 6) double
  torch::Tensor is_seen_;  // (N) double: 1 or 0
};

/// The precisions, without those of sizes of which there is no object.
template <class Measured>
Metrics precisions(const Measured& measured) {
  Metrics metrics{
      {"map", measured.precision}, {"map_50", measured.precision_50}, {"map_75", measured.precision_75}};
  for (const auto& [name, precision] :
       {std::pair("map_small", measured.precision_small), std::pair("map_medium", measured.precision_medium),
        std::pair("map_large", measured.precision_large)}) {
    if (precision >= 0) metrics[name] = precision;
  }
  return metrics;
}

std::vector<ClassMetrics> class_metrics(const DetectionMetrics& measured,
                                        const std::vector<std::string>& labels) {
  std::vector<ClassMetrics> classes;
  for (const auto& of : measured.categories)
    classes.push_back({.label = labels.at(static_cast<size_t>(of.category)), .metrics = precisions(of)});
  return classes;
}

/// How many of the marked objects are found: by the best suggestion of at least half the score that has their
/// class and half of the area in common.
int64_t n_matched(const std::vector<AnnotatedObject>& marked, const QueryObjects& objects,
                  const ImageShape& picture) {
  constexpr double half = 0.5;
  const auto order = std::get<1>(objects.scores[0].sort(/*stable=*/true, /*dim=*/0, /*descending=*/true));
  std::vector<char> taken(marked.size(), 0);
  for (int64_t i = 0; i < order.size(0); ++i) {
    const auto q = order[i].item<int64_t>();
    if (objects.scores[0][q].item<double>() < half) break;
    const auto box = in_picture(objects.boxes[0][q].const_data_ptr<double>(), picture);
    for (size_t m = 0; m < marked.size(); ++m) {
      const bool is_it = !taken[m] && marked[m].category == objects.classes[0][q].item<int64_t>() &&
                         intersection_over_union(box, marked[m].box) >= half;
      if (!is_it) continue;
      taken[m] = 1;
      break;
    }
  }
  return std::ranges::count(taken, 1);
}

void ObjectDetection::add_examples(Model& model, const SetCriterion& criterion, const Batch& batch,
                                   Split split, std::vector<ExampleScore>& examples) {
  const auto numbers = batch.field(fields::kImageNumbers);
  for (int64_t row = 0; row < batch.n_rows(); ++row) {
    const auto number = numbers[row].item<int64_t>();
    const auto& marked = pictures(split)->objects(number);
    const auto part = model.on_device(take_rows(batch, row, 1));
    const auto detections = model.detecting()->detect(part);
    const auto objects = objects_of(detections);
    const auto n_likely = (objects.scores >= 0.5).sum().item<int64_t>();
    const int64_t matched = n_matched(marked, objects, pictures(split)->shape(number));
    examples.push_back({.input = pictures(split)->file(number).string(),
                        .target = fmt::format("{} objects", marked.size()),
                        .prediction = fmt::format("{} objects, {} matched", n_likely, matched),
                        .loss = criterion.loss(detections, part).item<double>(),
                        .targets = 1,
                        .right = matched == std::ssize(marked) && matched == n_likely});
  }
}

Metrics ObjectDetection::measure(Model& model, Split split, const EvaluationOptions& options) {
  const InferenceScope scope(model);
  const SetCriterion criterion(config_of(experiment()).criterion);
  auto& source = batches(split);
  FoundObjects found(pictures(split)->size(), model.detecting()->n_queries());
  auto sums = torch::zeros({2}, torch::kDouble);  // loss, pictures
  for_each_own_batch(source, options, [&](const Batch& batch) {
    const auto on_device = model.on_device(batch);
    const auto detections = model.detecting()->detect(on_device);
    sums[0] += criterion.loss(detections, on_device).to(torch::kCPU);
    sums[1] += batch.n_rows();
    found.add(objects_of(detections), batch.field(fields::kImageNumbers));
    if (options.examples) add_examples(model, criterion, batch, split, *options.examples);
  });
  sum_over_processes(options, sums);
  const auto measured = found.measure(*pictures(split), options);
  if (options.classes) *options.classes = class_metrics(measured, labels());
  const double n_pictures = sums[1].item<double>();
  auto metrics = precisions(measured);
  metrics.insert({{"loss", sums[0].item<double>() / n_pictures},
                  {"recall_1", measured.recall_1},
                  {"recall_10", measured.recall_10},
                  {"recall_100", measured.recall_100},
                  {"images", n_pictures}});
  return metrics;
}

/// The objects of the first row.
std::vector<LabelledBox> ObjectDetection::labelled(const QueryObjects& objects,
                                                   const ImageShape& picture) const {
  std::vector<LabelledBox> result;
  for (int64_t q = 0; q < objects.scores.size(1); ++q) {
    const auto label = static_cast<size_t>(objects.classes.const_data_ptr<int64_t>()[q]);
    result.push_back({.label = labels().at(label),
                      .score = objects.scores.const_data_ptr<double>()[q],
                      .box = in_picture(objects.boxes.const_data_ptr<double>() + 4 * q, picture),
                      .query = q});
  }
  std::ranges::stable_sort(result, std::greater(), &LabelledBox::score);
  return result;
}

ImageInputs ObjectDetection::input_of(const std::vector<Image>& pictures) const {
  const auto& config = experiment().data.images;
  ImageInputs inputs;
  std::vector<Image> read;
  for (const auto& picture : pictures) {
    read.push_back(resized_to_fit(picture, config.size, config));
    inputs.shown.push_back({.width = static_cast<double>(picture.shape.width),
                            .height = static_cast<double>(picture.shape.height)});
  }
  inputs.batch = batch_of_pictures(read, config, *vocabulary().pixels);
  return inputs;
}

ImageInputs ObjectDetection::read_inputs(const std::vector<std::string>& files) const {
  std::vector<Image> pictures;
  for (const auto& file : files) pictures.push_back(read_picture(file, experiment().data.images));
  return input_of(pictures);
}

/// One picture at a time: pictures of other sizes would be padded, and padding changes what a convolutional
/// network sees at its edge.
Prediction ObjectDetection::predict_one(Model& model, const std::string& name,
                                        const ImageInputs& input) const {
  const auto objects = objects_of(model.detecting()->detect(model.on_device(input.batch)));
  if (objects.scores.isnan().any().item<bool>()) fail_not_a_number();
  const auto& shown = input.shown.front();
  const ImageShape picture{.height = static_cast<int64_t>(shown.height),
                           .width = static_cast<int64_t>(shown.width)};
  return {.input = name, .answer = PredictedObjects{labelled(objects, picture)}};
}

std::vector<Prediction> ObjectDetection::predict(Model& model, const std::vector<std::string>& inputs,
                                                 const PredictOptions& options) {
  const InferenceScope scope(model);
  std::vector<Prediction> predictions;
  int64_t n_read = 0;
  for (const auto& input : inputs) {
    const auto read = [&](const auto& file) { return read_picture(file, experiment().data.images); };
    if (const auto picture = read_input(input, options, read)) {
      predictions.push_back(predict_one(model, input, input_of({*picture})));
      predictions.back().on_white = picture->has_transparency;
    }
    if (options.on_progress) options.on_progress(++n_read, std::ssize(inputs));
  }
  return predictions;
}

/// "Bag, Coat": the classes of objects, the best first.
std::string class_names(const std::vector<std::string>& names) {
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

/// The classes of the objects that the model is more sure of than not.
std::string likely_objects(const Prediction& prediction) {
  constexpr double likely = 0.5;
  std::vector<std::string> names;
  for (const auto& object : prediction.objects())
    if (object.score >= likely) names.push_back(object.label);
  return class_names(names);
}

std::vector<Sample> ObjectDetection::samples(Model& model, const std::vector<std::string>& inputs) {
  constexpr int64_t n_samples = 5;
  std::vector<Sample> result;
  if (!inputs.empty()) {
    for (const auto& prediction : predict(model, inputs, {}))
      result.push_back({.input = prediction.input, .output = likely_objects(prediction)});
    return result;
  }
  const InferenceScope scope(model);
  const auto set = pictures(Split::valid);
  for (int64_t i = 0; i < std::min(n_samples, set->size()); ++i) {
    const auto name = fmt::format("validation image {}", i + 1);
    std::vector<std::string> names;
    for (const auto& object : set->objects(i))
      names.push_back(labels()[static_cast<size_t>(object.category)]);
    result.push_back({.input = name,
                      .output = likely_objects(predict_one(model, name, input_of({set->image(i)}))),
                      .reference = class_names(names)});
  }
  return result;
}

std::unique_ptr<Task> make_object_detection(const Experiment& experiment, Vocabulary vocabulary) {
  std::vector<DescribedPictures> descriptions;
  if (vocabulary.labels.empty()) {
    descriptions = read_descriptions(experiment.data, Split::train);
    vocabulary.labels = categories_of(descriptions);
  }
  auto data = marked_images(experiment.data, vocabulary.labels, std::move(descriptions));
  std::vector<std::string> notes;
  if (!vocabulary.pixels) {
    const auto& images = data.of(Split::train);
    vocabulary.pixels =
        measure_training_pixels(images.size(), [&](int64_t index) { return images.image(index); }, notes);
  }
  require_n_classes(config_of(experiment).n_classes, vocabulary);
  return std::make_unique<ObjectDetection>(experiment, std::move(vocabulary), std::move(data), notes);
}

void validate_object_detection(const Experiment& experiment, const Complain& complain) {
  const auto& heads = model_families().at(experiment.model.architecture).heads;
  if (std::ranges::find(heads, HeadKind::detection) == heads.end()) {
    complain("model.architecture", fmt::format("must be detr or another family that finds objects, not {}",
                                               experiment.model.architecture.type));
  }
  if (experiment.training.objective.type != "task") {
    complain("training.objective",
             fmt::format("{} does not understand boxes: leave it out", experiment.training.objective.type));
  }
  if (experiment.training.label_smoothing > 0)
    complain("training.label_smoothing", "is not for object_detection: leave it out");
  if (experiment.training.batch_tokens)
    complain("training.batch_tokens", "is not for object_detection: use training.batch_size");
  validate_for_boxes(experiment.data.images, complain_under("data.images", complain));
}

}  // namespace

TaskType object_detection() {
  const auto precision = [](std::string key, std::string label) {
    return Metric{
        .key = std::move(key), .label = std::move(label), .better = Better::higher, .percent = true};
  };
  TaskType type;
  type.name = "object_detection";
  type.doc = "The objects of a picture, with their boxes.";
  type.make_options = options_of<ObjectDetectionConfig>();
  type.best_by = {precision("map", "mAP"), precision("map_50", "mAP at IoU 0.5"),
                  precision("map_75", "mAP at IoU 0.75")};
  type.comparison = type.best_by.front();
  type.needs = VocabularyNeeds::labels_and_pixels;
  type.predicts_from = PredictionInput::image_file;
  type.predicts = PredictionKind::objects;
  type.unit = "image";
  type.make = make_object_detection;
  type.validate = validate_object_detection;
  type.purpose = [](const Experiment& experiment, int64_t) -> std::optional<ModelPurpose> {
    const auto n_classes = config_of(experiment).n_classes;
    if (!n_classes) return std::nullopt;
    return image_purpose(experiment, HeadKind::detection, *n_classes);
  };
  return type;
}

}  // namespace zoo

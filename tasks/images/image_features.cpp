// Models of images without a head, which are opened for their vectors and attention maps. Nothing is trained.

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/images/image_batches.h"
#include "tasks/images/image_task.h"
#include "tasks/library_tasks.h"
#include "tasks/task.h"
#include "tasks/task_checks.h"

namespace zoo {
namespace {

[[noreturn]] void fail_without_images() {
  throw UsageError(
      "the task image_features has no data to train or to evaluate on: it opens a model without a head for "
      "zoo "
      "embed, attention and inspect; to train one, choose another task and init_from");
}

class ImageFeatures final : public Task {
 public:
  using Task::Task;

  ModelPurpose purpose() const override { return image_purpose(experiment(), HeadKind::none, 0); }

  /// Pictures of which nothing is said.
  std::vector<Prediction> predict(Model&, const std::vector<std::string>& inputs,
                                  const PredictOptions&) override {
    std::vector<Prediction> predictions;
    for (const auto& input : inputs) predictions.push_back({.input = input});
    return predictions;
  }

  ImageInputs read_inputs(const std::vector<std::string>& files) const override {
    const auto& config = experiment().data.images;
    auto images = torch::empty({std::ssize(files), config.channels, config.size, config.size});
    ImageInputs inputs;
    for (int64_t i = 0; i < std::ssize(files); ++i) {
      const auto [image, shown] = read_fitted(files[static_cast<size_t>(i)], config);
      inputs.shown.push_back(shown);
      write_normalised(image, *vocabulary().pixels, images[i].mutable_data_ptr<float>());
    }
    inputs.batch.fields = {{fields::kImages, std::move(images)}};
    return inputs;
  }

 private:
  std::unique_ptr<BatchSource> open(Split) override { fail_without_images(); }
};

}  // namespace

TaskType image_features() {
  TaskType type;
  type.name = "image_features";
  type.doc = "None: a model without a head, for the vectors and attention maps of images.";
  type.needs = VocabularyNeeds::pixels;
  type.unit = "image";
  type.predicts_from = PredictionInput::image_file;
  type.make = [](const Experiment& experiment, Vocabulary vocabulary) -> std::unique_ptr<Task> {
    if (!vocabulary.pixels) fail_without_images();
    return std::make_unique<ImageFeatures>(experiment, std::move(vocabulary));
  };
  type.validate = [](const Experiment& experiment, const Complain& complain) {
    require_shape(experiment, {FamilyShape::other}, "vit or another family that reads images", complain);
    validate_fit(experiment, complain);
  };
  type.purpose = [](const Experiment& experiment, int64_t) -> std::optional<ModelPurpose> {
    return image_purpose(experiment, HeadKind::none, 0);
  };
  return type;
}

}  // namespace zoo

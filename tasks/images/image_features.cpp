// Models of images without a head, which are opened for their vectors and attention maps. Nothing is trained.

#include <fmt/format.h>

#include "base/error.h"
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
    return unanswered(inputs);
  }

  ImageInputs read_inputs(const std::vector<std::string>& files) const override {
    return read_images(files, experiment().data.images, *vocabulary().pixels);
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

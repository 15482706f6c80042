// Images from files to predictions: training, scores, runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "data/images/image_file.h"
#include "data/images/image_set.h"
#include "tasks/evaluation.h"
#include "tasks/images/mixed_cross_entropy.h"
#include "tasks/task.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ImageClassification, ARunLearnsAndPredicts) {
  const TinyWorld world;
  const auto experiment = world.image_experiment({"training.steps=150", "training.batch_size=16",
                                                  "training.best_by=accuracy", "data.images.augment={}"});
  train(experiment, {.run_dir = world.path("run")});
  const zoo::Run run = zoo::Run::open(world.path("run"));
  EXPECT_THAT(run.labels(), ElementsAre("bars", "columns", "noise"));
  torch::Tensor confusion;
  const auto metrics = run.task().evaluate(run.model(), Split::valid, {.confusion = &confusion});
  EXPECT_EQ(confusion.sum().item<int64_t>(), 9);
  EXPECT_NEAR(confusion.trace().item<double>() / 9, metrics.at("accuracy"), 1e-12);
  EXPECT_GE(metrics.at("accuracy"), 0.8);
  EXPECT_EQ(metrics.at("top_5_accuracy"), 1);  // there are three classes
  EXPECT_EQ(metrics.at("images"), 9);

  // As the validation images, so their files.
  const auto images = labelled_images(experiment.data).take(Split::valid);
  std::vector<std::string> files;
  for (int64_t i = 0; i < images.size(); ++i) {
    files.push_back(world.path(fmt::format("{}.png", i)).string());
    world.dir().write(fmt::format("{}.png", i), encode_png(images.image(i)));
  }
  const auto inputs = run.task().read_inputs(files);
  const auto batch = run.task().batches(Split::valid).batch(0, 0);
  EXPECT_TRUE(torch::equal(inputs.batch.field("images").narrow(0, 0, batch.n_rows()), batch.field("images")));
  ASSERT_EQ(inputs.shown.size(), files.size());
  EXPECT_EQ(inputs.shown.front().width, static_cast<double>(images.image(0).shape.width));
  const auto predictions = run.task().predict(run.model(), files);
  ASSERT_EQ(std::ssize(predictions), images.size());
  int64_t n_right = 0;
  for (int64_t i = 0; i < images.size(); ++i) {
    const auto& prediction = predictions[static_cast<size_t>(i)];
    n_right += prediction.labels().front().label == images.label(i);
    double sum = 0;
    for (const auto& label : prediction.labels()) sum += label.probability;
    EXPECT_NEAR(sum, 1, 1e-9);
  }
  EXPECT_NEAR(static_cast<double>(n_right) / static_cast<double>(images.size()), metrics.at("accuracy"),
              1e-9);
}

// More files than go through the model at once: each keeps its name and its labels.
TEST(ImageClassification, ManyFilesArePredictedAsOneByOne) {
  const TinyWorld world;
  const auto task = task_of_new_run(world.image_experiment());
  const auto model = initialized_model(task->experiment(), *task);
  const auto images = labelled_images(task->experiment().data).take(Split::train);
  std::vector<std::string> files;
  for (int64_t i = 0; i < 70; ++i) {
    files.push_back(world.path(fmt::format("{}.png", i)).string());
    world.dir().write(fmt::format("{}.png", i), encode_png(images.image(i)));
  }
  std::vector<std::pair<int64_t, int64_t>> progress;
  const auto predictions = task->predict(
      *model, files, {.on_progress = [&](int64_t done, int64_t all) { progress.emplace_back(done, all); }});
  EXPECT_THAT(progress, ElementsAre(std::pair(32, 70), std::pair(64, 70), std::pair(70, 70)));
  ASSERT_EQ(predictions.size(), files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(predictions[i].input, files[i]);
    const auto alone = task->predict(*model, {files[i]}).front();
    ASSERT_EQ(alone.labels().size(), predictions[i].labels().size());
    for (size_t k = 0; k < alone.labels().size(); ++k) {
      EXPECT_EQ(alone.labels()[k].label, predictions[i].labels()[k].label) << i;
      EXPECT_NEAR(alone.labels()[k].probability, predictions[i].labels()[k].probability, 1e-5) << i;
    }
  }
}

TEST(ImageClassification, ARunWithoutItsStatisticsIsRefused) {
  const TinyWorld world;
  train(world.image_experiment({"training.steps=1"}), {.run_dir = world.path("run")});
  const auto problem = [&] {
    return message_of<CheckpointError>([&] { zoo::Run::open(world.path("run")); });
  };
  EXPECT_EQ(problem(), "no error");
  for (const char* bad :
       {"[1]", "{", R"({"mean": [0], "deviation": [0]})", R"({"mean": [0, 0], "deviation": [1, 1]})",
        R"({"mean": ["a"], "deviation": [1]})"}) {
    world.dir().write("run/pixels.json", bad);
    EXPECT_THAT(problem(), HasSubstr("pixels.json: damaged")) << bad;
  }
  std::filesystem::remove(world.path("run/pixels.json"));
  EXPECT_THAT(problem(), HasSubstr("pixels.json: missing: images cannot be normalised without it"));
}

TEST(ImageClassification, BadConfigurationsGetOneLine) {
  const TinyWorld world;
  const auto problem = [&](const std::vector<std::string>& overrides) {
    return message_of<Error>([&] { task_of_new_run(world.image_experiment(overrides)); });
  };
  EXPECT_THAT(problem({"model.architecture=encoder"}),
              HasSubstr("must be vit or another family that reads images"));
  EXPECT_THAT(problem({"data.images.channels=2"}), HasSubstr("must be 1 (grey) or 3 (colours)"));
  EXPECT_THAT(problem({"data.images.augment={crop_padding: 1, min_crop_area: 0.5}"}),
              HasSubstr("choose one"));
  EXPECT_THAT(problem({"training.objective=cross_entropy"}), HasSubstr("mixes images"));
  EXPECT_THAT(problem({"task={type: image_classification, n_classes: 4}"}),
              HasSubstr("the training data have 3 classes, but task.n_classes is 4"));
  EXPECT_THAT(message_of<ConfigError>([&] {
                train(world.image_experiment({"model.architecture=resnet", "training.batch_size=auto",
                                              "training.effective_batch_size=16",
                                              "training.gradient_accumulation=1"}),
                      {.run_dir = world.path("run")});
              }),
              HasSubstr("batch norm is over all rows"));
  EXPECT_THAT(problem({"data.train=nothing-images-idx3"}), HasSubstr("does not exist"));
}

/// Gives the logits of its batch.
class GivenLogits final : public Model {
 public:
  torch::Tensor features(const Batch& batch) override { return batch.field("logits"); }
  torch::Tensor logits(const torch::Tensor& features) override { return features; }
  int64_t n_outputs() const override { return 3; }
  torch::Tensor hidden_states(const Batch& batch) override { return batch.field("logits"); }
  void attention_maps(const Batch&, AttentionMaps&) override {}
};

// The loss of a mixed image is the cross-entropy with a target of two probabilities, computed here by hand.
TEST(MixedCrossEntropy, WeighsBothTargets) {
  const auto logits = torch::randn({4, 3}), shares = torch::tensor({1.0, 0.7, 0.5, 0.0}, torch::kFloat);
  const auto first = torch::tensor({0, 1, 2, 0}), second = torch::tensor({1, 2, 2, 1});
  Batch batch{.targets = first,
              .fields = {{"logits", logits}, {"shares", shares}, {"other_targets", second}}};
  const auto probabilities =
      shares.unsqueeze(1) * at::one_hot(first, 3) + (1 - shares).unsqueeze(1) * at::one_hot(second, 3);
  GivenLogits model;
  for (const double smoothing : {0.0, 0.1}) {
    const auto smooth = probabilities * (1 - smoothing) + smoothing / 3;
    const auto expected = -(smooth * logits.log_softmax(1)).sum();
    EXPECT_TRUE(torch::allclose(MixedCrossEntropy(smoothing).loss(model, batch), expected));
  }
}

}  // namespace
}  // namespace zoo::testing

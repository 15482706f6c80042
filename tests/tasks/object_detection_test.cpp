// Pictures with objects from files to predictions: training, scores, runs.

#include <algorithm>
#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "checkpoints/initial_weights.h"
#include "checkpoints/run.h"
#include "data/images/annotated_images.h"
#include "data/images/image_file.h"
#include "tasks/task.h"
#include "tests/support/training.h"
#include "training/gradient_accumulator.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ObjectDetection, ARunLearnsAndPredicts) {
  const TinyWorld world;
  const auto experiment = world.detection_experiment(
      {"training.steps=150", "model.init=xavier_uniform", "training.batch_size=18",
       "training.gradient_accumulation=1", "training.best_by=map_50", "training.evaluate_every=150",
       "training.checkpoint_every=150", "training.optimizer.lr=0.003", "model.dropout=0",
       "data.images.augment={min_crop_area: null, min_scale: 1, flip: 0}"});
  train(experiment, {.run_dir = world.path("run")});
  const zoo::Run run = zoo::Run::open(world.path("run"));
  EXPECT_THAT(run.labels(), ElementsAre("dark", "light"));
  EXPECT_EQ(task_type(experiment).predicts, PredictionKind::objects);

  const auto untrained = initialized_model(experiment, run.task());
  const auto before = run.task().evaluate(*untrained, Split::train),
             after = run.task().evaluate(run.model(), Split::train);
  EXPECT_LT(after.at("loss"), 0.6 * before.at("loss"));
  EXPECT_GT(after.at("map_50"), 0.1);
  EXPECT_GT(after.at("map_50"), 4 * before.at("map_50"));
  EXPECT_EQ(after.at("images"), 36);

  const auto set = marked_images(experiment.data, run.labels()).take(Split::train);
  for (int64_t i = 0; i < 10; ++i) {
    const auto predictions = run.task().predict(run.model(), {set.file(i).string()});
    ASSERT_EQ(predictions.size(), 1U);
    const auto& objects = predictions.front().objects();
    ASSERT_EQ(objects.size(), 5U);
    std::set<int64_t> queries;
    for (const auto& object : objects) queries.insert(object.query.value());
    EXPECT_THAT(queries, ElementsAre(0, 1, 2, 3, 4));
    EXPECT_TRUE(std::ranges::is_sorted(objects, std::greater(), &LabelledBox::score));
    for (const auto& object : objects) {
      EXPECT_GE(object.score, 0);
      EXPECT_LE(object.score, 1);
      EXPECT_LE(object.box.width, static_cast<double>(set.shape(i).width));
    }
  }
}

// The boxes of a prediction are in pixels of the file, whatever the size in which the model reads it.
TEST(ObjectDetection, BoxesAreInPixelsOfThePicture) {
  const TinyWorld world;
  const auto task = task_of_new_run(world.detection_experiment());
  const auto model = initialized_model(task->experiment(), *task);
  Image image{.shape = {.channels = 1, .height = 16, .width = 20}, .pixels = std::vector<uint8_t>(320, 7)};
  Image large{.shape = {.channels = 1, .height = 64, .width = 80}, .pixels = std::vector<uint8_t>(5120, 7)};
  world.dir().write("small.png", encode_png(image));
  world.dir().write("large.png", encode_png(large));
  const auto predictions =
      task->predict(*model, {world.path("small.png").string(), world.path("large.png").string()});
  for (size_t i = 0; i < 5; ++i) {
    const auto &small = predictions[0].objects().at(i).box, &four_times = predictions[1].objects().at(i).box;
    EXPECT_NEAR(4 * small.x, four_times.x, 1e-3);
    EXPECT_NEAR(4 * small.height, four_times.height, 1e-3);
  }
  EXPECT_THAT(message_of<DataError>([&] { task->predict(*model, {world.path("none.png").string()}); }),
              HasSubstr("none.png"));
}

// An evaluation of some batches looks for the objects of their pictures only.
TEST(ObjectDetection, ScoresOfSomeBatches) {
  const TinyWorld world;
  const auto task = task_of_new_run(world.detection_experiment());
  const auto model = initialized_model(task->experiment(), *task);
  EXPECT_EQ(task->evaluate(*model, Split::train, {.max_batches = 2}).at("images"), 8);
  EXPECT_TRUE(std::isfinite(task->evaluate(*model, Split::valid).at("loss")));
}

TEST(ObjectDetection, BadConfigurationsGetOneLine) {
  const TinyWorld world;
  const auto problem = [&](const std::vector<std::string>& overrides) {
    return message_of<Error>([&] {
      const auto task = task_of_new_run(world.detection_experiment(overrides));
      initialized_model(task->experiment(), *task);
    });
  };
  EXPECT_EQ(problem({}), "no error");
  EXPECT_THAT(problem({"model.architecture=encoder"}),
              HasSubstr("must be detr or another family that finds objects"));
  EXPECT_THAT(problem({"model.position=alibi"}),
              HasSubstr("position of a detr must be sinusoidal or learned"));
  EXPECT_THAT(problem({"model.attention={type: window, size: 4}"}),
              HasSubstr("attention of a detr must be full"));
  EXPECT_THAT(problem({"data.images.augment={mixup: 0.5}"}), HasSubstr("augment.mixup does not fit boxes"));
  EXPECT_THAT(problem({"data.images.augment={erasing: 0.5}"}),
              HasSubstr("augment.erasing does not fit boxes"));
  EXPECT_THAT(problem({"data.images.max_size=8"}), HasSubstr("max_size 8 is less than size 16"));
  EXPECT_THAT(problem({"training.objective=cross_entropy"}), HasSubstr("does not understand boxes"));
  EXPECT_THAT(problem({"training.label_smoothing=0.1"}),
              HasSubstr("label_smoothing is not for object_detection"));
  EXPECT_THAT(problem({"task={type: object_detection, n_classes: 4}"}),
              HasSubstr("the training data have 2 classes, but task.n_classes is 4"));
  EXPECT_THAT(problem({"data.train=train-images-idx3"}), HasSubstr("read from a COCO file"));
  EXPECT_THAT(message_of<Error>([&] { task_of_new_run(world.image_experiment({"data.images.max_size=9"})); }),
              HasSubstr("max_size is for object_detection"));
  EXPECT_THAT(
      message_of<Error>([&] { task_of_new_run(world.image_experiment({"data.images.padding=square"})); }),
      HasSubstr("padding is for object_detection"));
}

}  // namespace
}  // namespace zoo::testing

// The metrics of each class of a detector.

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "checkpoints/initial_weights.h"
#include "data/images/image_file.h"
#include "tasks/task.h"
#include "tests/support/training.h"

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

// The numbers themselves are compared with pycocotools in tests/parity.
TEST(DetectionClasses, AreNamedAndHaveTheMeanOfAll) {
  const TinyWorld world;
  const auto experiment = world.detection_experiment({});
  const auto task = task_of_new_run(experiment);
  torch::manual_seed(1);
  const auto model = initialized_model(experiment, *task);
  std::vector<ClassMetrics> classes;
  const auto all = task->evaluate(*model, Split::train, {.classes = &classes});
  ASSERT_EQ(classes.size(), 2U);
  EXPECT_EQ(classes[0].label, "dark");
  EXPECT_EQ(classes[1].label, "light");
  for (const auto* key : {"map", "map_50", "map_75"}) {
    EXPECT_GE(classes[0].metrics.at(key), 0);
    EXPECT_NEAR((classes[0].metrics.at(key) + classes[1].metrics.at(key)) / 2, all.at(key), 1e-12) << key;
  }
  EXPECT_TRUE(classes[0].metrics.contains("map_small"));
  EXPECT_FALSE(classes[0].metrics.contains("map_large")) << "no object is large";
}

TEST(DetectionClasses, PicturesHaveAtLeastOnePixel) {
  const TinyWorld world;
  EXPECT_THAT(
      message_of<ConfigError>([&] { world.detection_experiment({"data.images.augment.min_scale=0.02"}); }),
      HasSubstr("augment.min_scale 0.02 of size 16 is less than a pixel: make it larger"));
}

// A box may reach out of the picture: here each is as large as the picture, around its lower right corner.
TEST(DetectionClasses, PredictedBoxesEndAtTheEdge) {
  const TinyWorld world;
  const auto task = task_of_new_run(world.detection_experiment());
  const auto model = initialized_model(task->experiment(), *task);
  const torch::NoGradGuard no_grad;
  for (const auto& item : model->named_parameters())
    if (item.key().starts_with("box_head.last")) item.value().fill_(item.value().dim() == 1 ? 20 : 0);
  world.dir().write("a.png", encode_png({.shape = {.channels = 1, .height = 16, .width = 20},
                                         .pixels = std::vector<uint8_t>(320, 7)}));
  const auto predictions = task->predict(*model, {world.path("a.png").string()});
  for (const auto& object : predictions.front().objects()) {
    EXPECT_NEAR(object.box.x, 10, 0.1);
    EXPECT_NEAR(object.box.y, 8, 0.1);
    EXPECT_LE(object.box.x + object.box.width, 20);
    EXPECT_LE(object.box.y + object.box.height, 16);
  }
}

}  // namespace
}  // namespace zoo::testing

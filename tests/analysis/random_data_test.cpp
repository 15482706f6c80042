// Tasks on random data, for measuring models whose data are not here.

#include "costs/random_data.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "experiments/load_experiment.h"

namespace zoo {
namespace {

TEST(RandomTask, HasImagesOfTheConfiguration) {
  for (const int64_t n_classes : {3, 300}) {
    const auto experiment = parse_experiment(
        fmt::format("task: {{type: image_classification, n_classes: {}}}\n"
                    "data: {{images: {{size: 12, channels: 3}}}}\n"
                    "model: {{architecture: {{type: vit, patch_size: 4}}, d_model: 8, n_heads: 2}}\n"
                    "training: {{batch_size: 4}}\n",
                    n_classes),
        "vit.yaml");
    EXPECT_EQ(missing_data(experiment), "data.train names no files");
    RandomTask random(experiment);
    EXPECT_EQ(random.task().purpose().n_classes, n_classes);
    EXPECT_EQ(random.description(), "random images of 12 x 12 pixels");
    const auto batch = random.task().batches(Split::train).batch(0, 1);
    EXPECT_EQ(batch.field("images").sizes(), (std::vector<int64_t>{4, 3, 12, 12}));
    EXPECT_EQ(batch.tokens, 4);  // images
  }
}

}  // namespace
}  // namespace zoo

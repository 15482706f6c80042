// What models of folding share: which states of residues count.

#include "models/folding_model.h"

#include <gtest/gtest.h>
#include <torch/types.h>

#include "tests/support/small_models.h"

namespace zoo {
namespace {

using testing::close;

TEST(ResidueFeatures, AreMeansOfResiduesWithoutPadding) {
  const auto hidden = torch::randn({2, 4, 3});
  Batch batch;
  batch.input = {.ids = torch::zeros({2, 4}, torch::kInt64), .lengths = torch::tensor({4, 1})};
  const auto means = residue_features(hidden, batch);
  EXPECT_TRUE(close(means[0], hidden[0].mean(0)));
  EXPECT_TRUE(close(means[1], hidden[1][0]));
  batch.input.lengths = torch::Tensor();
  EXPECT_TRUE(close(residue_features(hidden, batch)[1], hidden[1].mean(0)));
  batch.positions = torch::tensor({5, 0});
  EXPECT_TRUE(close(residue_features(hidden, batch), torch::stack({hidden[1][1], hidden[0][0]})));
}

}  // namespace
}  // namespace zoo

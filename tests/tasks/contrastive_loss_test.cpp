#include "tasks/matching/contrastive_loss.h"

#include <cmath>

#include <gtest/gtest.h>
#include <torch/types.h>

namespace zoo {
namespace {

/// How well three pictures (rows) and three texts fit.
torch::Tensor some_scores() {
  return torch::tensor({{2.0, -1.0, 0.5}, {0.25, 1.5, -2.0}, {3.0, 0.0, -0.5}}, torch::kDouble);
}

TEST(ContrastiveLoss, OfClipChoosesTheTextOfAPictureAndThePictureOfAText) {
  const auto shares = some_scores().exp();
  double expected = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const double own = shares[i][i].item<double>();
    expected -= std::log(own / shares[i].sum().item<double>()) / 2;
    expected -= std::log(own / shares.select(1, i).sum().item<double>()) / 2;
  }
  EXPECT_NEAR(contrastive_loss(some_scores(), PairScores::softmax).item<double>(), expected, 1e-5);
}

TEST(ContrastiveLoss, OfSiglipJudgesEachPairByItself) {
  double expected = 0;
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 3; ++j) {
      const double score = some_scores()[i][j].item<double>();
      expected += std::log1p(std::exp(i == j ? -score : score));
    }
  }
  EXPECT_NEAR(contrastive_loss(some_scores(), PairScores::sigmoid).item<double>(), expected, 1e-5);
}

}  // namespace
}  // namespace zoo

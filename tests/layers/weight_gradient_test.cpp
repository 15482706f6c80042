#include "layers/weight_gradient.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace zoo {
namespace {

bool is_here() { return has_weight_gradient(torch::zeros({1, 32})); }

TEST(WeightGradient, IsTheProduct) {
  if (!is_here()) GTEST_SKIP() << "no 512-bit vectors";
  torch::manual_seed(1);
  for (const int64_t n : {1, 127, 128, 129, 300}) {
    for (const int64_t o : {1, 7, 12, 20, 31, 44}) {
      for (const int64_t i : {16, 32, 80}) {
        const auto gradient = torch::randn({n, o}), x = torch::randn({n, i});
        const auto expected = gradient.to(torch::kDouble).t().mm(x.to(torch::kDouble));
        const auto result = weight_gradient(gradient, x);
        ASSERT_EQ(result.sizes(), expected.sizes());
        EXPECT_LE((result - expected).norm().item<double>(), 1e-6 * expected.norm().item<double>())
            << n << " " << o << " " << i;
      }
    }
  }
}

TEST(WeightGradient, IsTheSameWithAnyNumberOfThreads) {
  if (!is_here()) GTEST_SKIP() << "no 512-bit vectors";
  const auto gradient = torch::randn({200, 100}), x = torch::randn({200, 64});
  const int n_threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto expected = weight_gradient(gradient, x);
  at::set_num_threads(3);
  const auto result = weight_gradient(gradient, x);
  at::set_num_threads(n_threads);
  EXPECT_TRUE(torch::equal(result, expected));
}

TEST(WeightGradient, IsNotThereForWidthsThatDoNotFillTheVectors) {
  EXPECT_FALSE(has_weight_gradient(torch::zeros({1, 40})));
  EXPECT_THROW(weight_gradient(torch::zeros({1, 6}), torch::zeros({1, 40})), c10::Error);
}

}  // namespace
}  // namespace zoo

#include "kernels/linear_gradients.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace zoo {
namespace {

class LinearGradients : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(1); }
};

void expect_gemm(const torch::Tensor& result, const torch::Tensor& a, const torch::Tensor& b) {
  const auto expected = a.to(torch::kDouble).mm(b.to(torch::kDouble));
  ASSERT_EQ(result.sizes(), expected.sizes());
  EXPECT_LE((result - expected).norm().item<double>(), 1e-6 * expected.norm().item<double>())
      << a.sizes() << " times " << b.sizes();
}

TEST_F(LinearGradients, OfTheWeightAreTheProduct) {
  for (const int64_t n : {0, 1, 127, 128, 129, 300}) {
    for (const int64_t o : {1, 7, 12, 20, 31, 44}) {
      for (const int64_t i : {16, 32, 80}) {
        const auto gradient = torch::randn({n, o}), x = torch::randn({n, i});
        expect_gemm(weight_gradient(gradient, x), gradient.t(), x);
      }
    }
  }
}

TEST_F(LinearGradients, OfTheInputAreTheProduct) {
  for (const int64_t n : {0, 1, 7, 12, 20, 31, 300}) {
    for (const int64_t o : {1, 127, 128, 129, 300}) {
      for (const int64_t i : {16, 32, 80}) {
        const auto gradient = torch::randn({n, o}), weight = torch::randn({o, i});
        expect_gemm(input_gradient(gradient, weight), gradient, weight);
      }
    }
  }
}

TEST_F(LinearGradients, AreTheSameWithAnyNumberOfThreads) {
  const auto gradient = torch::randn({200, 100}), x = torch::randn({200, 64}),
             weight = torch::randn({100, 64});
  const int n_threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto of_weight = weight_gradient(gradient, x), of_input = input_gradient(gradient, weight);
  at::set_num_threads(3);
  EXPECT_TRUE(torch::equal(weight_gradient(gradient, x), of_weight));
  EXPECT_TRUE(torch::equal(input_gradient(gradient, weight), of_input));
  at::set_num_threads(n_threads);
}

TEST_F(LinearGradients, AreNotThereForWidthsThatDoNotFillTheVectors) {
  EXPECT_FALSE(has_weight_gradient(torch::zeros({1, 40})));
  EXPECT_THROW(weight_gradient(torch::zeros({1, 6}), torch::zeros({1, 40})), c10::Error);
  EXPECT_FALSE(has_input_gradient(torch::zeros({6, 40})));
  EXPECT_THROW(input_gradient(torch::zeros({1, 6}), torch::zeros({6, 40})), c10::Error);
}

TEST_F(LinearGradients, OfTheInputAreForSmallWeights) {
  EXPECT_TRUE(has_input_gradient(torch::zeros({512, 128})));
  EXPECT_FALSE(has_input_gradient(torch::zeros({1536, 384})));
}

}  // namespace
}  // namespace zoo

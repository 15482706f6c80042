#include "kernels/cross_entropy.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

TEST(CrossEntropy, LossAndGradientAreThoseOfTorch) {
  torch::manual_seed(1);
  for (const int64_t n_classes : {2, 31, 65, 1000}) {
    for (const double smoothing : {0.0, 0.1, 1.0}) {
      const auto values = torch::randn({37, n_classes}) * 5;
      const auto targets = torch::randint(n_classes, {37});
      const auto ours = values.clone().requires_grad_(), theirs = values.clone().requires_grad_();
      const auto options =
          torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum).label_smoothing(smoothing);
      const auto expected = torch::nn::functional::cross_entropy(theirs, targets, options) * 0.25;
      const auto loss = cross_entropy_sum(ours, targets, {.label_smoothing = smoothing, .weight = 0.25});
      EXPECT_NEAR(loss.item<double>() / expected.item<double>(), 1, 2e-6);
      (loss * 3).backward();
      (expected * 3).backward();
      EXPECT_LE((ours.grad() - theirs.grad()).norm().item<double>(),
                1e-6 * theirs.grad().norm().item<double>());
    }
  }
}

// Logits that are far apart, and logits that are all equal: without subtracting the maximum the exponentials
// would overflow or vanish.
TEST(CrossEntropy, LargeLogits) {
  const auto values = torch::tensor({{1e4F, -1e4F, 0.0F}, {-1e4F, -1e4F, -1e4F}});
  const auto logits = values.clone().requires_grad_();
  const auto loss = cross_entropy_sum(logits, torch::tensor({0, 1}, torch::kLong));
  EXPECT_NEAR(loss.item<double>(), std::log(3.0), 1e-6);
  loss.backward();
  EXPECT_TRUE(torch::allclose(
      logits.grad(), torch::tensor({{0.0F, 0.0F, 0.0F}, {1 / 3.0F, -2 / 3.0F, 1 / 3.0F}}), 1e-5, 1e-6));
}

TEST(CrossEntropy, WhatIsNoNumberStaysNone) {
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const int64_t place : {0, 5, 69}) {
      auto values = torch::zeros({1, 70});
      values[0][place] = wrong;
      const auto loss = cross_entropy_sum(values.requires_grad_(), torch::tensor({1}, torch::kLong));
      EXPECT_TRUE(std::isnan(loss.item<double>())) << wrong << " at " << place;
    }
  }
}

TEST(CrossEntropy, TargetsMustBeClasses) {
  for (const int64_t target : {-100, -1, 4}) {
    for (const bool learning : {false, true}) {
      const auto logits = torch::zeros({1, 4}).requires_grad_(learning);
      EXPECT_THROW(cross_entropy_sum(logits, torch::tensor({target}, torch::kLong)), c10::Error) << target;
    }
  }
  EXPECT_THROW(cross_entropy_sum(torch::zeros({3, 4}), torch::zeros({2}, torch::kLong)), c10::Error);
}

// tanh needs its output for its gradient, but the gradient of the logits has overwritten it.
TEST(CrossEntropy, WhoKeptTheLogitsIsTold) {
  const auto x = torch::randn({3, 4}).requires_grad_();
  EXPECT_THROW(cross_entropy_sum(x.tanh(), torch::zeros({3}, torch::kLong)).backward(), c10::Error);
}

TEST(CrossEntropy, WithoutGradientLeavesTheLogitsAlone) {
  const torch::NoGradGuard no_grad;
  const auto logits = torch::randn({5, 7}), before = logits.clone();
  const auto targets = torch::randint(7, {5});
  const auto expected = torch::nn::functional::cross_entropy(
      logits, targets, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  EXPECT_TRUE(torch::allclose(cross_entropy_sum(logits, targets), expected));
  EXPECT_TRUE(torch::equal(logits, before));
}

}  // namespace
}  // namespace zoo

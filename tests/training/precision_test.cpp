#include "models/precision.h"

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

TEST(PrecisionScope, RoundsProductsWhileItLives) {
  const auto x = torch::randn({4, 8}), weight = torch::randn({3, 8});
  for (const auto& [precision, type] :
       {std::pair(Precision::bf16, torch::kBFloat16), std::pair(Precision::fp16, torch::kHalf)}) {
    {
      const PrecisionScope scope(precision, c10::kCPU);
      EXPECT_EQ(torch::linear(x, weight).scalar_type(), type);
      const PrecisionScope inner(Precision::fp32, c10::kCPU);  // the outer scope stays in force
      EXPECT_EQ(torch::linear(x, weight).scalar_type(), type);
    }
    EXPECT_EQ(torch::linear(x, weight).scalar_type(), torch::kFloat);
  }
}

TEST(Precision, AutomaticIsResolvedOnce) {
  EXPECT_EQ(resolve(Precision::fp32, c10::kCPU, 1024), Precision::fp32);
  EXPECT_EQ(resolve(Precision::fp16, c10::kCPU, 8), Precision::fp16);
  EXPECT_EQ(resolve(Precision::automatic, c10::kCPU, 8), Precision::fp32);  // too narrow to gain
  EXPECT_NE(resolve(Precision::automatic, c10::kCPU, 1024), Precision::automatic);
}

TEST(LossScale, HalvesOnOverflowAndGrowsAfterAWhile) {
  auto scale = LossScale::for_precision(Precision::fp16);
  EXPECT_EQ(scale.value, 65536);
  scale.update(Overflow::yes);
  EXPECT_EQ(scale.value, 32768);
  EXPECT_EQ(scale.skipped, 1);
  for (int64_t i = 0; i < LossScale::growth_interval - 1; ++i) scale.update(Overflow::no);
  EXPECT_EQ(scale.value, 32768);
  scale.update(Overflow::no);
  EXPECT_EQ(scale.value, 65536);
  EXPECT_EQ(LossScale::for_precision(Precision::bf16).value, 1);
}

TEST(LossScale, CountsGoodStepsSinceTheLastChange) {
  auto scale = LossScale::for_precision(Precision::fp16);
  const auto good = [&](int64_t n) {
    for (int64_t i = 0; i < n; ++i) scale.update(Overflow::no);
  };
  good(LossScale::growth_interval - 1);
  scale.update(Overflow::yes);
  good(LossScale::growth_interval - 1);
  EXPECT_EQ(scale.value, 32768) << "the steps before the overflow do not count";
  good(1);
  EXPECT_EQ(scale.value, 65536);
  good(LossScale::growth_interval - 1);
  EXPECT_EQ(scale.value, 65536) << "the steps before the growth do not count";
  good(1);
  EXPECT_EQ(scale.value, 131072);
}

}  // namespace
}  // namespace zoo

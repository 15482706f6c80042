#include "generation/rules/sampler.h"

#include <cmath>
#include <limits>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "tests/support/errors.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Uniform, IsPhiloxOfSeedAndDraw) {
  // The known answer of Random123 for key 0 and counter 0 begins 6627e8d5 e169c58d.
  EXPECT_EQ(uniform(0, {}), static_cast<double>(0x6627e8d5e169c58dULL >> 11) * 0x1p-53);
  std::set<double> seen;
  for (uint64_t seed : {0, 1}) {
    for (uint64_t prompt : {0, 1}) {
      for (uint64_t sample : {0, 1}) {
        for (uint64_t position : {0, 1}) {
          const double u = uniform(seed, {.prompt = prompt, .sample = sample, .position = position});
          EXPECT_TRUE(u >= 0 && u < 1);
          seen.insert(u);
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 16U);
}

TEST(GreedySampler, TakesTheLargestAmongEqualsTheFirst) {
  const auto logits = torch::tensor({{1.F, 3.F, 2.F}, {5.F, 5.F, 5.F}, {-kInf, -1.F, -1.F}});
  EXPECT_THAT(GreedySampler().sample(logits, std::vector<Draw>(3)), ElementsAre(1, 0, 1));
}

TEST(RandomSampler, DrawsWithTheProbabilitiesOfTheSoftmax) {
  constexpr int64_t n = 20000;
  const auto p = torch::tensor({0.5F, 0.F, 0.3F, 0.2F});
  const auto logits = p.log().expand({n, 4});
  std::vector<Draw> draws(n);
  for (size_t i = 0; i < draws.size(); ++i) draws[i].position = i;
  std::vector<double> share(4);
  for (const int64_t token : RandomSampler(3).sample(logits, draws))
    share[static_cast<size_t>(token)] += 1.0 / n;
  EXPECT_EQ(share[1], 0);
  EXPECT_NEAR(share[0], 0.5, 0.015);  // four standard deviations
  EXPECT_NEAR(share[2], 0.3, 0.015);
  EXPECT_NEAR(share[3], 0.2, 0.015);
}

TEST(RandomSampler, GivesARowTheSameTokenWhateverElseIsInTheBatch) {
  const auto logits = torch::randn({6, 50}, torch::make_generator<torch::CPUGeneratorImpl>(1));
  std::vector<Draw> draws;
  for (uint64_t i = 0; i < 6; ++i) draws.push_back({.prompt = i, .sample = 2 * i, .position = 3 * i});
  const RandomSampler sampler(11);
  const auto together = sampler.sample(logits, draws);
  for (int64_t i = 0; i < 6; ++i) {
    const auto alone = sampler.sample(logits.narrow(0, i, 1), {&draws[static_cast<size_t>(i)], 1});
    EXPECT_EQ(alone.front(), together[static_cast<size_t>(i)]);
  }
}

TEST(RandomSampler, LeavesTheGlobalGeneratorAlone) {
  torch::manual_seed(5);
  const auto expected = torch::rand({4});
  torch::manual_seed(5);
  RandomSampler(0).sample(torch::zeros({2, 8}), std::vector<Draw>(2));
  EXPECT_TRUE(torch::equal(torch::rand({4}), expected));
}

TEST(RandomSampler, NeverDrawsWhatIsImpossible) {
  // Impossible tokens at both ends, and numbers close to 0 and to 1 among the draws.
  const auto logits = torch::tensor({-kInf, 0.F, -kInf, 0.F, -kInf}).expand({5000, 5});
  std::vector<Draw> draws(5000);
  for (size_t i = 0; i < draws.size(); ++i) draws[i].sample = i;
  for (const int64_t token : RandomSampler(9).sample(logits, draws)) ASSERT_TRUE(token == 1 || token == 3);
}

void expect_refusal(const Sampler& sampler, const torch::Tensor& logits) {
  const std::vector<Draw> draws(static_cast<size_t>(logits.size(0)));
  EXPECT_THAT(testing::message_of<CheckpointError>([&] { sampler.sample(logits, draws); }),
              ::testing::HasSubstr("not numbers"));
}

TEST(Samplers, RefuseWhatIsNotANumber) {
  for (const auto& logits : {torch::tensor({{1.F, 2.F}, {kNan, 2.F}}), torch::tensor({{-kInf, -kInf}}),
                             torch::tensor({{1.F, kInf}})}) {
    expect_refusal(GreedySampler(), logits);
    expect_refusal(RandomSampler(0), logits);
  }
}

}  // namespace
}  // namespace zoo

#include "generation/rules/logits_processors.h"

#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "generation/rules/repetition.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;

constexpr float kExcluded = -std::numeric_limits<float>::infinity();

torch::Tensor row(std::vector<float> values) { return torch::tensor(values).unsqueeze(0); }

std::vector<bool> kept(const torch::Tensor& logits) {
  std::vector<bool> result;
  for (int64_t i = 0; i < logits.size(1); ++i) result.push_back(logits[0][i].item<float>() != kExcluded);
  return result;
}

std::vector<bool> kept_by(const LogitsProcessor& processor, std::vector<float> values) {
  return kept(processor.process(row(std::move(values)), {}));
}

TEST(TopK, KeepsTheLargestAndLeavesTheirScores) {
  const auto input = row({1, 5, 3, 4});
  const auto output = TopK(2).process(input, {});
  EXPECT_TRUE(torch::equal(output, row({kExcluded, 5, kExcluded, 4})));
  EXPECT_TRUE(torch::equal(input, row({1, 5, 3, 4}))) << "the input was changed";
}

TEST(TopK, KeepsExactlyKAmongEqualsTheFirst) {
  EXPECT_THAT(kept_by(TopK(2), {1, 3, 3, 3}), ElementsAre(false, true, true, false));
  EXPECT_THAT(kept_by(TopK(3), {2, 5, 2, 2}), ElementsAre(true, true, true, false));
  EXPECT_THAT(kept_by(TopK(1), {0, 0, 0, 0}), ElementsAre(true, false, false, false));
}

TEST(TopK, OfTheWholeVocabularyOrMoreKeepsAll) {
  EXPECT_THAT(kept_by(TopK(4), {1, 2, 3, 4}), ElementsAre(true, true, true, true));
  EXPECT_THAT(kept_by(TopK(5000), {1, 2, 3, 4}), ElementsAre(true, true, true, true));
}

TEST(TopK, DoesNotBringBackWhatIsForbidden) {
  EXPECT_THAT(kept_by(TopK(3), {kExcluded, 1, kExcluded, 2}), ElementsAre(false, true, false, true));
}

TEST(TopK, LooksAtEachRowAlone) {
  const auto output = TopK(1).process(torch::tensor({{1.F, 2.F}, {4.F, 3.F}}), {});
  EXPECT_TRUE(torch::equal(output, torch::tensor({{kExcluded, 2.F}, {4.F, kExcluded}})));
}

// Probabilities 1/2, 1/4, 1/8, 1/8 are exact in binary, and so are their sums. Logits are their logarithms.
const std::vector<float> kHalves = {-2.0794415F, -0.6931472F, -2.0794415F, -1.3862944F};  // 1/8 1/2 1/8 1/4

TEST(TopP, KeepsTheSmallestSetThatReachesP) {
  EXPECT_THAT(kept_by(TopP(0.4), kHalves), ElementsAre(false, true, false, false));
  EXPECT_THAT(kept_by(TopP(0.6), kHalves), ElementsAre(false, true, false, true));
  EXPECT_THAT(kept_by(TopP(0.74), kHalves), ElementsAre(false, true, false, true));
  EXPECT_THAT(kept_by(TopP(0.8), kHalves), ElementsAre(true, true, false, true));
  EXPECT_THAT(kept_by(TopP(0.9), kHalves), ElementsAre(true, true, true, true));
}

TEST(TopP, StopsWhereTheMassIsExactlyP) {
  EXPECT_THAT(kept_by(TopP(0.5), {1, 1}), ElementsAre(true, false));
  EXPECT_THAT(kept_by(TopP(0.25), {1, 1, 1, 1}), ElementsAre(true, false, false, false));
  EXPECT_THAT(kept_by(TopP(0.75), {1, 1, 1, 1}), ElementsAre(true, true, true, false));
}

TEST(TopP, AlwaysKeepsOneAndWithOneKeepsAll) {
  EXPECT_THAT(kept_by(TopP(1e-300), {1, 2, 3}), ElementsAre(false, false, true));
  EXPECT_THAT(kept_by(TopP(1.0), {-100, 0, 100}), ElementsAre(true, true, true));
  EXPECT_THAT(kept_by(TopP(0.5), {3}), ElementsAre(true));
}

TEST(TopP, CountsTheMassOfWhatIsNotForbidden) {
  // Without the first, the others have 2/3 and 1/3.
  EXPECT_THAT(kept_by(TopP(0.6), {kExcluded, 0.6931472F, 0}), ElementsAre(false, true, false));
}

TEST(MinP, KeepsWhatIsNotMuchLessLikelyThanTheBest) {
  EXPECT_THAT(kept_by(MinP(0.6), kHalves), ElementsAre(false, true, false, false));
  EXPECT_THAT(kept_by(MinP(0.4), kHalves), ElementsAre(false, true, false, true));
  EXPECT_THAT(kept_by(MinP(0.2), kHalves), ElementsAre(true, true, true, true));
  EXPECT_THAT(kept_by(MinP(1), kHalves), ElementsAre(false, true, false, false));
  EXPECT_THAT(kept_by(MinP(0), {-1000, 0, kExcluded}), ElementsAre(true, true, false));
  EXPECT_THAT(kept_by(MinP(1), {3, 3, 2}), ElementsAre(true, true, false)) << "equals are equally likely";
  EXPECT_THAT(kept_by(MinP(0.5), {kExcluded, 0, -0.5F}), ElementsAre(false, true, true));
}

TEST(Temperature, DividesTheScores) {
  const auto expected = (row({1, 2, 4}) / 0.5).softmax(1);
  EXPECT_TRUE(torch::allclose(Temperature(0.5).process(row({1, 2, 4}), {}).softmax(1), expected));
}

TEST(Temperature, MayBeAsSmallAsANumberCanBe) {
  for (const double t : {1e-6, 1e-40, 1e-300}) {
    const auto p = Temperature(t).process(row({1, 2, kExcluded, 4}), {}).softmax(1);
    EXPECT_TRUE(torch::equal(p, row({0, 0, 0, 1}))) << t;
  }
}

TEST(SuppressTokens, ForbidsIdsAndWhatIsAboveTheVocabulary) {
  EXPECT_THAT(kept_by(SuppressTokens({0, 2}, 4, torch::kCPU), {1, 2, 3, 4, 5, 6}),
              ElementsAre(false, true, false, true, false, false));
  EXPECT_THAT(kept_by(SuppressTokens({7, 2, 4}, 9, torch::kCPU), {1, 2, 3, 4}),
              ElementsAre(true, true, false, true));
  EXPECT_THAT(kept_by(SuppressTokens({}, 4, torch::kCPU), {1, 2, 3, 4}), ElementsAre(true, true, true, true));
}

TEST(SequenceBiases, AreAddedToTheScoresOfTokensThatCompleteThem) {
  const auto input = row({1, 2, 3});
  const SequenceView view{.prompt = {}, .generated = {}};
  const SequenceBiases single({{{0}, 4}, {{2}, -1}, {{7}, 9}}, PresentTokens::in_output);
  EXPECT_TRUE(torch::equal(single.process(input, {&view, 1}), row({5, 2, 2})));
  EXPECT_TRUE(torch::equal(input, row({1, 2, 3}))) << "the input was changed";
}

TEST(LogitsProcessors, AreAppliedInOrder) {
  LogitsProcessors list;
  list.push_back(std::make_unique<SuppressTokens>(TokenIds{3}, 4, torch::kCPU));
  list.push_back(std::make_unique<TopK>(1));
  EXPECT_THAT(kept(process(list, row({1, 2, 3, 4}), {})), ElementsAre(false, false, true, false));
}

}  // namespace
}  // namespace zoo

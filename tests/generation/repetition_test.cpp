#include "generation/rules/repetition.h"

#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

namespace zoo {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

torch::Tensor scores_of(std::vector<float> values) { return torch::tensor(values).unsqueeze(0); }

TEST(RepetitionPenalty, DividesPositiveAndMultipliesNegativeScores) {
  const TokenIds prompt = {0, 1, 0}, generated = {2};
  const SequenceView view{prompt, generated};
  const auto input = scores_of({4, -1, 2, 3, kForbidden});
  const auto both = RepetitionPenalty(2, PresentTokens::in_prompt_or_output).process(input, {&view, 1});
  EXPECT_TRUE(torch::equal(both, scores_of({2, -2, 1, 3, kForbidden}))) << both;
  const auto output = RepetitionPenalty(2, PresentTokens::in_output).process(input, {&view, 1});
  EXPECT_TRUE(torch::equal(output, scores_of({4, -1, 1, 3, kForbidden}))) << output;
  EXPECT_TRUE(torch::equal(input, scores_of({4, -1, 2, 3, kForbidden}))) << "the input was changed";
}

TEST(RepetitionPenalty, DoesNotBringBackWhatIsForbidden) {
  const TokenIds prompt = {0, 1}, none;
  const SequenceView view{prompt, none};
  const auto output = RepetitionPenalty(0.5, PresentTokens::in_prompt_or_output)
                          .process(scores_of({kForbidden, 1, 1}), {&view, 1});
  EXPECT_TRUE(torch::equal(output, scores_of({kForbidden, 2, 1}))) << output;
}

TEST(OccurrencePenalty, CountsOnlyTheOutput) {
  const TokenIds prompt = {0, 0, 0}, generated = {1, 2, 1};
  const SequenceView view{prompt, generated};
  const auto output = OccurrencePenalty(0.5, 0.25).process(scores_of({1, 1, 1, kForbidden}), {&view, 1});
  EXPECT_TRUE(torch::equal(output, scores_of({1, 0, 0.25, kForbidden}))) << output;
}

TEST(NoRepeatNgram, ForbidsWhatWouldCompleteOne) {
  const TokenIds prompt = {0, 1, 2, 0}, generated = {1};
  const SequenceView view{prompt, generated};
  const auto after = [&](int64_t n, PresentTokens said) {
    return NoRepeatNgram(n, said).process(scores_of({1, 1, 1, 1}), {&view, 1});
  };
  EXPECT_TRUE(torch::equal(after(3, PresentTokens::in_prompt_or_output), scores_of({1, 1, kForbidden, 1})));
  EXPECT_TRUE(torch::equal(after(2, PresentTokens::in_prompt_or_output), scores_of({1, 1, kForbidden, 1})));
  EXPECT_TRUE(torch::equal(after(4, PresentTokens::in_prompt_or_output), scores_of({1, 1, 1, 1})));
  EXPECT_TRUE(torch::equal(after(1, PresentTokens::in_output), scores_of({1, kForbidden, 1, 1})));
  EXPECT_TRUE(torch::equal(after(2, PresentTokens::in_output), scores_of({1, 1, 1, 1})));
}

TEST(NoRepeatNgram, LeavesAtLeastOneToken) {
  const TokenIds none, all = {0, 1, 2}, some = {0, 1};
  const std::vector<SequenceView> views = {{none, all}, {none, some}};
  const auto input = torch::tensor({{3.F, kForbidden, 1.F}, {3.F, 2.F, 1.F}});
  const auto output = NoRepeatNgram(1, PresentTokens::in_output).process(input, views);
  EXPECT_TRUE(torch::equal(output, torch::tensor({{3.F, kForbidden, 1.F}, {kForbidden, kForbidden, 1.F}})))
      << output;
}

TEST(Repetition, LooksAtEachRowAlone) {
  const TokenIds a = {0, 0}, b = {1}, none;
  const std::vector<SequenceView> views = {{none, a}, {none, b}, {none, none}};
  const auto input = torch::ones({3, 2});
  EXPECT_TRUE(torch::equal(RepetitionPenalty(4, PresentTokens::in_output).process(input, views),
                           torch::tensor({{0.25F, 1.F}, {1.F, 0.25F}, {1.F, 1.F}})));
  EXPECT_TRUE(torch::equal(OccurrencePenalty(0, 0.5).process(input, views),
                           torch::tensor({{0.F, 1.F}, {1.F, 0.5F}, {1.F, 1.F}})));
  EXPECT_TRUE(torch::equal(NoRepeatNgram(1, PresentTokens::in_output).process(input, views),
                           torch::tensor({{kForbidden, 1.F}, {1.F, kForbidden}, {1.F, 1.F}})));
}

TEST(Repetition, OfNothingChangesNothing) {
  const TokenIds none;
  const std::vector<SequenceView> views = {{none, none}};
  const auto input = scores_of({1, -2, kForbidden});
  for (const auto said : {PresentTokens::in_output, PresentTokens::in_prompt_or_output}) {
    EXPECT_TRUE(torch::equal(RepetitionPenalty(4, said).process(input, views), input));
    EXPECT_TRUE(torch::equal(NoRepeatNgram(2, said).process(input, views), input));
  }
  EXPECT_TRUE(torch::equal(OccurrencePenalty(1, 1).process(input, views), input));
}

}  // namespace
}  // namespace zoo

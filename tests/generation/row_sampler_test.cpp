#include "generation/rules/row_sampler.h"

#include <functional>
#include <limits>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "generation/rules/repetition.h"
#include "generation/rules/token_rules.h"

namespace zoo {
namespace {

constexpr int64_t kOutputs = 23, kTokens = 19;  // V, and the size of the vocabulary

/// Rules of one row, and a text that they go on from.
struct Text {
  TokenRules rules;
  TokenIds prompt, generated;
  Draw draw;
};

class RowSamplerTest : public ::testing::Test {
 protected:
  template <class... Rules>
  static TokenRules rules(std::optional<uint64_t> seed, Rules... more) {
    TokenRules result;
    (result.processors.push_back(std::make_unique<Rules>(std::move(more))), ...);
    if (seed) {
      result.sampler = std::make_unique<RandomSampler>(*seed);
    } else {
      result.sampler = std::make_unique<GreedySampler>();
    }
    return result;
  }
  static SuppressTokens suppressed(TokenIds ids) { return {ids, kTokens, torch::kCPU}; }

  void add(TokenRules rules, TokenIds prompt = {3, 1, 4}) {
    const auto n = texts_.size();
    texts_.push_back({.rules = std::move(rules),
                      .prompt = std::move(prompt),
                      .generated = {static_cast<int64_t>(n) % 7},
                      .draw = {.prompt = n, .sample = 2 * n}});
  }

  /// Scores of which some are equal, and some impossible.
  torch::Tensor logits() const {
    auto scores = (torch::randn({std::ssize(texts_), kOutputs}) * 4).round() / 2;
    return scores.masked_fill(torch::rand(scores.sizes()) < 0.1, -std::numeric_limits<double>::infinity());
  }

  /// What a row's own rules choose.
  static int64_t chosen(const Text& text, const torch::Tensor& logits) {
    auto draw = text.draw;
    draw.position = text.generated.size();
    const SequenceView view{text.prompt, text.generated};
    return text.rules.sampler->sample(process(text.rules.processors, logits, {&view, 1}), {&draw, 1}).front();
  }
  void set(RowSampler& sampler, int64_t row, const Text& text) const {
    auto draw = text.draw;
    draw.position = text.generated.size();
    sampler.set(row, text.rules.of_row().value(), {text.prompt, text.generated}, draw);
  }
  /// Both choose `steps` tokens for each row.
  void expect_equal(RowSampler& sampler, int64_t steps) {
    for (int64_t step = 0; step < steps; ++step) {
      SCOPED_TRACE(step);
      const auto scores = logits();
      sampler.prepare();
      const auto tokens = sampler.choose(scores);
      for (int64_t i = 0; i < std::ssize(texts_); ++i) {
        auto& text = texts_[static_cast<size_t>(i)];
        const auto wanted = chosen(text, scores.narrow(0, i, 1));
        EXPECT_EQ(tokens[i].item<int64_t>(), wanted) << "row " << i;
        text.generated.push_back(wanted);
      }
    }
  }

  std::vector<Text> texts_;
};

TEST_F(RowSamplerTest, ChoosesWhatTheRulesOfEachRowChoose) {
  const SaidTokens said(PresentTokens::in_prompt_or_output), in_output(PresentTokens::in_output);
  add(rules({}));
  add(rules(5));
  add(rules(6, suppressed({2, 5, 40})));
  add(rules({}, suppressed({2, 5}), RepetitionPenalty(1.7, said), OccurrencePenalty(0.3, 0.2)));
  add(rules(7, suppressed({0}), RepetitionPenalty(0.6, in_output), Temperature(0.7)));
  add(rules(8, OccurrencePenalty(-0.4, 0.1), Temperature(1.3), TopK(3)));
  add(rules(9, Temperature(1), TopK(1)));
  add(rules(9, Temperature(0.9), TopP(0.6)));
  add(rules(10, Temperature(2), TopK(7), TopP(0.8), MinP(0.2)));
  add(rules(11, MinP(0.5)));
  add(rules(11, TopK(500), TopP(1), MinP(0)));
  add(rules(12, Temperature(1e-40)));
  RowSampler sampler(16, kOutputs, torch::kCPU);
  for (size_t i = 0; i < texts_.size(); ++i) set(sampler, static_cast<int64_t>(i), texts_[i]);
  expect_equal(sampler, 80);  // more than there are random numbers at once
}

// A row may come, take the place of another one, move and leave at any step.
TEST_F(RowSamplerTest, RowsComeAndGo) {
  const SaidTokens said(PresentTokens::in_prompt_or_output);
  RowSampler sampler(4, kOutputs, torch::kCPU);
  add(rules(1, Temperature(1.5), TopK(4)));
  add(rules({}, RepetitionPenalty(2, said)));
  for (int64_t i = 0; i < 2; ++i) set(sampler, i, texts_[static_cast<size_t>(i)]);
  expect_equal(sampler, 5);
  add(rules(2, suppressed({1, 2, 3}), OccurrencePenalty(0.5, 0.5)));
  set(sampler, 2, texts_[2]);
  expect_equal(sampler, 5);
  sampler.clear(0);  // the last row takes its place
  sampler.move(2, 0);
  texts_[0] = std::move(texts_[2]);
  texts_.pop_back();
  expect_equal(sampler, 40);
  texts_[0].rules = rules(4);  // without what was suppressed there
  set(sampler, 0, texts_[0]);
  expect_equal(sampler, 10);
}

TEST_F(RowSamplerTest, RowsWithoutNumbersChooseNothing) {
  add(rules({}));
  add(rules(3, TopP(0.5)));
  add(rules(3));
  RowSampler sampler(4, kOutputs, torch::kCPU);
  for (size_t i = 0; i < texts_.size(); ++i) set(sampler, static_cast<int64_t>(i), texts_[i]);
  auto scores = torch::zeros({3, kOutputs});
  scores[0].fill_(std::numeric_limits<double>::quiet_NaN());
  scores[1][4] = std::numeric_limits<double>::quiet_NaN();
  sampler.prepare();
  const auto tokens = sampler.choose(scores);
  EXPECT_EQ(tokens[0].item<int64_t>(), -1);
  EXPECT_EQ(tokens[1].item<int64_t>(), -1);
  EXPECT_GE(tokens[2].item<int64_t>(), 0);
}

// Other steps of the device are needed for other rules, and only then.
TEST_F(RowSamplerTest, VariantsTellSteps) {
  RowSampler sampler(2, kOutputs, torch::kCPU);
  std::vector<int64_t> variants;
  const auto variant_of = [&](TokenRules some) {
    add(std::move(some));
    set(sampler, 0, texts_.back());
    sampler.prepare();
    return sampler.variant();
  };
  EXPECT_EQ(variant_of(rules({})), variant_of(rules({}, suppressed({4}))));
  EXPECT_EQ(variant_of(rules({}, Temperature(0.5), TopK(3))), variant_of(rules({})))
      << "greedy rows have no use for them";
  EXPECT_EQ(variant_of(rules(1, TopK(5))), variant_of(rules(2, TopK(8))));
  for (auto* const make :
       {+[] { return rules({}); }, +[] { return rules(1); }, +[] { return rules(1, TopK(3)); },
        +[] { return rules(1, TopK(5)); }, +[] { return rules(1, TopP(0.5)); },
        +[] { return rules(1, MinP(0.5)); }, +[] { return rules({}, OccurrencePenalty(1, 0)); },
        +[] { return rules({}, RepetitionPenalty(2, PresentTokens::in_output)); }})
    variants.push_back(variant_of(make()));
  std::ranges::sort(variants);
  EXPECT_EQ(std::ranges::adjacent_find(variants), variants.end());
}

// Numbers say nothing of rules that look at the text, nor of another order.
TEST_F(RowSamplerTest, OtherRulesAreForTheHost) {
  const SaidTokens said(PresentTokens::in_output);
  EXPECT_TRUE(rules(1, suppressed({1}), Temperature(2), TopK(3), TopP(0.5), MinP(0.1)).of_row());
  EXPECT_FALSE(rules(1, NoRepeatNgram(2, said)).of_row());
  EXPECT_FALSE(rules(1, TypicalP(0.5)).of_row());
  EXPECT_FALSE(rules({}, ForbiddenTokens({1}, [](const SequenceView&) { return false; })).of_row());
  EXPECT_FALSE(rules({}, RepetitionPenalty(2, PresentTokens::in_prompt)).of_row());
  EXPECT_FALSE(rules(1, TopP(0.5), TopK(3)).of_row());
  EXPECT_FALSE(rules({}, RepetitionPenalty(2, said), RepetitionPenalty(3, said)).of_row());
}

TEST_F(RowSamplerTest, LogProbabilitiesAreThoseOfTheModel) {
  const auto scores = torch::randn({3, kOutputs});
  const auto tokens = torch::tensor({4, 0, -1}, torch::kInt64);
  const auto found = logprobs_of(scores, tokens);
  const auto all = scores.to(torch::kDouble).log_softmax(1);
  EXPECT_TRUE(torch::equal(found, torch::stack({all[0][4], all[1][0], all[2][0]})));
}

}  // namespace
}  // namespace zoo

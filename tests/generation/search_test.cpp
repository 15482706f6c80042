#include "generation/search.h"

#include <cmath>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/error.h"
#include "tests/support/fake_models.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using zoo::testing::BigramModel;
using zoo::testing::HistoryModel;

std::vector<Hypothesis> run(GenerativeModel& model, const std::vector<TokenIds>& prompts,
                            const SearchLimits& limits, const Sampler& sampler = GreedySampler(),
                            std::vector<SampleRow> rows = {}) {
  if (rows.empty()) {
    for (size_t i = 0; i < prompts.size(); ++i) rows.push_back({.prompt = i, .draw = {.prompt = i}});
  }
  const LogitsProcessors none;
  SamplingSearch search(model, torch::kCPU, prompts, rows, none, sampler, limits);
  while (search.step()) {
  }
  return search.outputs();
}

/// The expected output of a greedy decoder with a limited view (sequence_reader.h): everything is computed
/// again for each token.
TokenIds greedy_by_hand(const HistoryModel& model, const TokenIds& prompt, int64_t n, int64_t eos) {
  TokenIds view = prompt, result;
  const auto shorten = [&] {
    const int64_t limit = model.max_length();
    if (static_cast<int64_t>(view.size()) > limit) view.erase(view.begin(), view.end() - (limit + 1) / 2);
  };
  shorten();
  while (static_cast<int64_t>(result.size()) < n) {
    result.push_back(model.logprobs_after(view).argmax().item<int64_t>());
    if (result.back() == eos) break;
    view.push_back(result.back());
    shorten();
  }
  return result;
}

TEST(GreedySearch, FollowsTheTableUntilEos) {
  // 0 → 1 → 2 → 3 (eos); 4 → 4 for ever.
  auto table = torch::zeros({5, 5});
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{{0, 1}, {1, 2}, {2, 3}, {4, 4}})
    table[from][to] = 9;
  BigramModel model(table);
  const auto outputs = run(model, {{0}, {4, 1}, {4}}, {.max_new_tokens = 4, .ends = {3}});
  EXPECT_THAT(outputs[0].ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(outputs[1].ids, ElementsAre(2, 3));
  EXPECT_THAT(outputs[2].ids, ElementsAre(4, 4, 4, 4));
  const double logprob = 9 - std::log(std::exp(9.0) + 4);
  for (const auto& output : outputs) {
    ASSERT_EQ(output.logprobs.size(), output.ids.size());
    for (const double value : output.logprobs) EXPECT_NEAR(value, logprob, 1e-6);
    EXPECT_NEAR(output.total, logprob * static_cast<double>(output.ids.size()), 1e-5);
  }
}

TEST(GreedySearch, OfManyPromptsIsThatOfEachAlone) {
  HistoryModel model({.vocab_size = 7});
  const std::vector<TokenIds> prompts = {{1, 2, 3, 4, 5}, {0}, {6, 6}, {2, 1}, {5, 4, 3, 2, 1, 0}, {3}};
  const SearchLimits limits{.max_new_tokens = 30, .ends = {6}};
  const auto together = run(model, prompts, limits);
  std::set<size_t> lengths;
  for (size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(together[i].ids, greedy_by_hand(model, prompts[i], 30, 6)) << i;
    lengths.insert(together[i].ids.size());
  }
  EXPECT_GE(lengths.size(), 3U) << "rows should leave the batch at different times";
}

TEST(GreedySearch, DropsFinishedRows) {
  HistoryModel model({.vocab_size = 7});
  const std::vector<TokenIds> prompts = {{1}, {0}, {6}, {2}};
  int64_t tokens = 0;
  for (const auto& output : run(model, prompts, {.max_new_tokens = 30, .ends = {6}}))
    tokens += static_cast<int64_t>(output.ids.size());
  EXPECT_EQ(model.tokens_read, tokens) << "the last token of an output is not read, but its prompt is";
}

TEST(GreedySearch, GoesOnBeyondTheLengthOfADecoderFromItsLastHalf) {
  for (const int64_t limit : {1, 2, 5, 8}) {
    HistoryModel model({.vocab_size = 9, .max_length = limit});
    // The third is longer than the model sees. The others become too long at different times.
    const std::vector<TokenIds> prompts = {{1, 2, 3, 4}, {0}, {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3}, {5, 6}};
    const auto outputs = run(model, prompts, {.max_new_tokens = 40});
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(outputs[i].ids, greedy_by_hand(model, prompts[i], 40, -1))
          << "limit " << limit << ", prompt " << i;
    }
  }
}

TEST(GreedySearch, ReadsAgainOnlyTheRowsThatOutgrowTheModel) {
  const std::vector<TokenIds> prompts = {{1, 2, 3, 4}, {0}, {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3}, {5, 6}};
  const auto tokens_read = [](const std::vector<TokenIds>& some) {
    HistoryModel model({.vocab_size = 9, .max_length = 8});
    run(model, some, {.max_new_tokens = 40});
    return model.tokens_read;
  };
  int64_t expected = 0;
  for (const auto& prompt : prompts) expected += tokens_read({prompt});
  EXPECT_EQ(tokens_read(prompts), expected);
}

TEST(GreedySearch, ReadsALongTextLessThanTwice) {
  HistoryModel model({.vocab_size = 9, .max_length = 64});
  run(model, {{1}}, {.max_new_tokens = 1000});
  EXPECT_LE(model.tokens_read, 2000);
}

TEST(Sampling, DependsOnSeedPromptAndSampleAlone) {
  HistoryModel model({.vocab_size = 20, .spread = 2});
  const std::vector<TokenIds> prompts = {{1, 2, 3}, {4}};
  const SearchLimits limits{.max_new_tokens = 12, .ends = {0}};
  const RandomSampler sampler(42);
  const std::vector<SampleRow> rows = {{0, {.prompt = 0, .sample = 0}},
                                       {0, {.prompt = 0, .sample = 1}},
                                       {1, {.prompt = 1, .sample = 0}},
                                       {1, {.prompt = 1, .sample = 1}}};
  const auto together = run(model, prompts, limits, sampler, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto alone = run(model, {prompts[rows[i].prompt]}, limits, sampler, {{0, rows[i].draw}});
    EXPECT_EQ(alone.front().ids, together[i].ids) << i;
  }
  EXPECT_NE(together[0].ids, together[1].ids);
  EXPECT_NE(run(model, prompts, limits, RandomSampler(43), rows)[0].ids, together[0].ids);
}

TEST(Sampling, ReportsTheLogprobsOfTheModelNotOfTheProcessors) {
  HistoryModel model({.vocab_size = 6});
  LogitsProcessors rules;
  rules.push_back(std::make_unique<Temperature>(5.0));
  rules.push_back(std::make_unique<TopK>(3));
  const RandomSampler sampler(1);
  SamplingSearch search(model, torch::kCPU, {{2}}, {{}}, rules, sampler, {.max_new_tokens = 8});
  while (search.step()) {
  }
  TokenIds text = {2};
  const auto& output = search.outputs().front();
  for (size_t i = 0; i < output.ids.size(); ++i) {
    EXPECT_NEAR(output.logprobs[i], model.logprobs_after(text)[output.ids[i]].item<double>(), 1e-5);
    text.push_back(output.ids[i]);
  }
}

TEST(Sampling, TellsProcessorsWhatWasGenerated) {
  struct Recorder final : LogitsProcessor {
    torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override {
      EXPECT_EQ(static_cast<int64_t>(rows.size()), logits.size(0));
      for (const auto& row : rows) {
        seen->push_back({row.prompt.begin(), row.prompt.end()});
        seen->push_back({row.generated.begin(), row.generated.end()});
      }
      return logits;
    }
    std::shared_ptr<std::vector<TokenIds>> seen = std::make_shared<std::vector<TokenIds>>();
  };
  auto recorder = std::make_unique<Recorder>();
  const auto seen = recorder->seen;
  LogitsProcessors rules;
  rules.push_back(std::move(recorder));
  auto table = torch::zeros({3, 3});
  table[0][1] = table[1][2] = 5;
  BigramModel model(table);
  const GreedySampler sampler;
  SamplingSearch search(model, torch::kCPU, {{2, 0}}, {{}}, rules, sampler, {.max_new_tokens = 2});
  while (search.step()) {
  }
  EXPECT_THAT(*seen, ElementsAre(TokenIds{2, 0}, TokenIds{}, TokenIds{2, 0}, TokenIds{1}));
}

TEST(Search, RefusesLogitsThatAreNotNumbers) {
  auto table = torch::zeros({3, 3});
  table[1][2] = std::numeric_limits<float>::quiet_NaN();
  table[0][1] = 4;
  BigramModel model(table);
  EXPECT_THROW(run(model, {{0}}, {.max_new_tokens = 5}), CheckpointError);
  // Also if the NaN belongs to a token that could not have been chosen.
  LogitsProcessors rules;
  rules.push_back(std::make_unique<SuppressTokens>(TokenIds{2}, 3, torch::kCPU));
  const GreedySampler sampler;
  SamplingSearch search(model, torch::kCPU, {{1}}, {{}}, rules, sampler, {.max_new_tokens = 5});
  EXPECT_THROW(search.step(), CheckpointError);
}

}  // namespace
}  // namespace zoo

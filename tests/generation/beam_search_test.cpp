#include "generation/beam_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/error.h"
#include "tests/support/fake_models.h"
#include "tests/support/requests.h"

namespace zoo {
namespace {

using zoo::testing::BigramModel;
using zoo::testing::HistoryModel;

const LogitsProcessors kNoRules;

struct Ranked {
  TokenIds ids;
  double score;
};

/// Whether generated tokens end, apart from the limits of the search.
using Ends = std::function<bool(const TokenIds& ids)>;
const Ends kNoOtherEnd = [](const TokenIds&) { return false; };

/// Every continuation of `text` that ends, scored by definition.
void enumerate(const HistoryModel& model, TokenIds& text, Hypothesis so_far, const SearchLimits& limits,
               double penalty, const Ends& ends, std::vector<Ranked>& out) {
  const auto logprobs = model.logprobs_after(text);
  for (int64_t token = 0; token < logprobs.size(0); ++token) {
    auto longer = so_far;
    longer.append(token, logprobs[token].item<double>());
    const bool is_longest = static_cast<int64_t>(longer.ids.size()) == limits.max_new_tokens;
    if (limits.is_end(token) || is_longest || ends(longer.ids)) {
      out.push_back({longer.ids, longer.total / std::pow(static_cast<double>(longer.ids.size()), penalty)});
      continue;
    }
    text.push_back(token);
    enumerate(model, text, longer, limits, penalty, ends, out);
    text.pop_back();
  }
}

std::vector<Ranked> enumerated(const HistoryModel& model, TokenIds prompt, const SearchLimits& limits,
                               double penalty, const Ends& ends = kNoOtherEnd) {
  std::vector<Ranked> out;
  enumerate(model, prompt, {}, limits, penalty, ends, out);
  std::ranges::sort(out, std::greater<>(), &Ranked::score);
  return out;
}

// With enough beams for every continuation, beam search is exhaustive: it gives all of them, best first.
TEST(BeamSearch, OfFullWidthFindsEverythingInOrder) {
  const SearchLimits limits{.max_new_tokens = 4, .ends = {3}};
  const std::vector<TokenIds> prompts = {{0}, {1, 2, 0}, {2, 2}};
  for (const double penalty : {0.0, 0.6, 1.0, 2.0, -1.0}) {
    HistoryModel model({.vocab_size = 4});
    const auto found =
        beam_search(model, torch::kCPU, prompts, kNoRules, limits,
                    {.beams = 200, .length_penalty = penalty, .early_stopping = EarlyStopping::never});
    for (size_t p = 0; p < prompts.size(); ++p) {
      const auto expected = enumerated(model, prompts[p], limits, penalty);
      ASSERT_EQ(found[p].size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(found[p][i].ids, expected[i].ids)
            << "prompt " << p << ", place " << i << ", penalty " << penalty;
        EXPECT_NEAR(length_normalised(found[p][i], penalty), expected[i].score, 1e-5);
      }
    }
  }
}

/// Four letters, which are the tokens 0 … 3.
std::shared_ptr<const Tokenizer> four_letters() {
  TokenizerConfig config;
  config.type = TokenizerKind::character;
  return make_tokenizer(config, SpecialTokenSet::none, [](const auto& sink) { sink("abcd"); });
}

// A stop text ends a hypothesis as eos does.
TEST(BeamSearch, OfFullWidthFindsEverythingUpToStopTexts) {
  const auto tokenizer = four_letters();
  const std::vector<std::string> stops = {"ba", "c"};
  const std::vector<TokenIds> prompts = {{0}, {1}, {1, 2, 1}};
  SearchLimits limits{.max_new_tokens = 4, .ends = {3}};
  for (const auto& prompt : prompts) limits.decoders.emplace_back(*tokenizer, prompt, stops);
  const Ends has_stop_text = [&](const TokenIds& ids) {
    const auto text = tokenizer->decode(ids);
    return std::ranges::any_of(stops, [&](const auto& stop) { return text.find(stop) != text.npos; });
  };
  HistoryModel model({.vocab_size = 4});
  const auto found = beam_search(model, torch::kCPU, prompts, kNoRules, limits,
                                 {.beams = 200, .early_stopping = EarlyStopping::never});
  for (size_t p = 0; p < prompts.size(); ++p) {
    const auto expected = enumerated(model, prompts[p], limits, 1.0, has_stop_text);
    ASSERT_EQ(found[p].size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(found[p][i].ids, expected[i].ids) << i;
  }
}

TEST(BeamSearch, OfSufficientWidthFindsTheBest) {
  const SearchLimits limits{.max_new_tokens = 5, .ends = {2}};
  for (int64_t start = 0; start < 12; ++start) {
    HistoryModel model({.vocab_size = 3});
    const TokenIds prompt = {start % 3, start / 3};
    // At most 2^4 beams run at a time, so none is lost.
    const auto found = beam_search(model, torch::kCPU, {prompt}, kNoRules, limits,
                                   {.beams = 16, .early_stopping = EarlyStopping::never});
    EXPECT_EQ(found.front().front().ids, enumerated(model, prompt, limits, 1.0).front().ids) << start;
  }
}

TEST(BeamSearch, WithOneBeamIsGreedySearch) {
  const std::vector<TokenIds> prompts = {{1, 2, 3, 4, 5}, {0}, {6, 6}, {2, 1}, {3}};
  const SearchLimits limits{.max_new_tokens = 20, .ends = {6}};
  HistoryModel model({.vocab_size = 7});
  const auto found = beam_search(model, torch::kCPU, prompts, kNoRules, limits, {.beams = 1});
  const auto greedy = testing::written(model, testing::requests(prompts, limits));
  for (size_t i = 0; i < prompts.size(); ++i) {
    ASSERT_EQ(found[i].size(), 1U);
    EXPECT_EQ(found[i].front().ids, greedy[i].ids);
    EXPECT_NEAR(found[i].front().total, greedy[i].total, 1e-5);
  }
}

TEST(BeamSearch, OfManyPromptsIsThatOfEachAlone) {
  const std::vector<TokenIds> prompts = {{1, 2, 3, 4, 5}, {0}, {6, 6}, {2, 1}, {3}};
  const SearchLimits limits{.max_new_tokens = 15, .ends = {6}};
  for (const bool continues : {true, false}) {
    // The sequences also become longer than the decoder sees, each at another time.
    HistoryModel model({.vocab_size = 7, .max_length = continues ? 9 : 15, .continues_prompt = continues});
    const auto together = beam_search(model, torch::kCPU, prompts, kNoRules, limits, {.beams = 3});
    for (size_t i = 0; i < prompts.size(); ++i) {
      const auto alone = beam_search(model, torch::kCPU, {prompts[i]}, kNoRules, limits, {.beams = 3});
      ASSERT_EQ(alone.front().size(), together[i].size());
      for (size_t b = 0; b < alone.front().size(); ++b) EXPECT_EQ(alone.front()[b].ids, together[i][b].ids);
    }
  }
}

TEST(BeamSearch, ReportsTheLogprobsOfTheModel) {
  HistoryModel model({.vocab_size = 6});
  const auto found =
      beam_search(model, torch::kCPU, {{2, 3}}, kNoRules, {.max_new_tokens = 8, .ends = {5}}, {.beams = 4});
  for (const auto& hypothesis : found.front()) {
    TokenIds text = {2, 3};
    for (size_t i = 0; i < hypothesis.ids.size(); ++i) {
      EXPECT_NEAR(hypothesis.logprobs[i], model.logprobs_after(text)[hypothesis.ids[i]].item<double>(), 1e-5);
      text.push_back(hypothesis.ids[i]);
    }
  }
}

/// Diverse beam search by its definition, without end tokens: groups choose one after the other, and a token
/// loses `penalty` for each beam of an earlier group that has chosen it in this step. All hypotheses have
/// `length` tokens. The best first.
std::vector<Ranked> diverse_by_hand(const HistoryModel& model, const TokenIds& prompt, int64_t length,
                                    size_t n_groups, size_t beams_of_group, double penalty) {
  std::vector<std::vector<Ranked>> groups(n_groups, {{.ids = {}, .score = 0}});
  for (int64_t step = 0; step < length; ++step) {
    std::vector<int64_t> chosen;
    for (auto& group : groups) {
      std::vector<Ranked> longer;
      for (const auto& beam : group) {
        auto text = prompt;
        text.insert(text.end(), beam.ids.begin(), beam.ids.end());
        const auto logprobs = model.logprobs_after(text);
        for (int64_t token = 0; token < logprobs.size(0); ++token) {
          auto ids = beam.ids;
          ids.push_back(token);
          const auto times = static_cast<double>(std::ranges::count(chosen, token));
          longer.push_back({ids, beam.score + logprobs[token].item<double>() - penalty * times});
        }
      }
      std::ranges::stable_sort(longer, std::greater<>(), &Ranked::score);
      longer.resize(std::min(longer.size(), beams_of_group));
      for (const auto& beam : longer) chosen.push_back(beam.ids.back());
      group = longer;
    }
  }
  std::vector<Ranked> all;
  for (const auto& group : groups) all.insert(all.end(), group.begin(), group.end());
  std::ranges::stable_sort(all, std::greater<>(), &Ranked::score);
  return all;
}

TEST(BeamSearch, OfSeveralGroupsGivesHypothesesThatDiffer) {
  const SearchLimits limits{.max_new_tokens = 6, .ends = {}};
  HistoryModel model({.vocab_size = 9});
  const std::vector<TokenIds> prompts = {{0}, {1, 2, 0}, {2, 2}};
  for (const double penalty : {0.0, 0.3, 2.0, 100.0}) {
    const auto found =
        beam_search(model, torch::kCPU, prompts, kNoRules, limits,
                    {.beams = 6, .length_penalty = 0, .groups = 3, .diversity_penalty = penalty});
    for (size_t p = 0; p < prompts.size(); ++p) {
      const auto expected = diverse_by_hand(model, prompts[p], limits.max_new_tokens, 3, 2, penalty);
      ASSERT_EQ(found[p].size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(found[p][i].ids, expected[i].ids) << penalty << ", prompt " << p << ", place " << i;
    }
  }
  // Without a penalty all groups find the same; with a large one no two of them begin alike.
  const auto firsts = [&](double penalty) {
    std::set<int64_t> tokens;
    const auto found = beam_search(model, torch::kCPU, prompts, kNoRules, limits,
                                   {.beams = 3, .groups = 3, .diversity_penalty = penalty});
    for (const auto& one : found.front()) tokens.insert(one.ids.front());
    return tokens.size();
  };
  EXPECT_EQ(firsts(0), 1U);
  EXPECT_EQ(firsts(100), 3U);
}

// More patience lets more hypotheses finish, so the best one can only become better.
TEST(BeamSearch, WithPatienceWaitsForMoreHypotheses) {
  const SearchLimits limits{.max_new_tokens = 12, .ends = {3}};
  HistoryModel model({.vocab_size = 4});
  bool improves = false;
  for (int64_t start = 0; start < 16; ++start) {
    const TokenIds prompt = {start % 4, start / 4};
    const auto search = [&](double patience) {
      return beam_search(model, torch::kCPU, {prompt}, kNoRules, limits, {.beams = 4, .patience = patience})
          .front();
    };
    const auto hasty = search(0.25), usual = search(1), patient = search(3);
    EXPECT_GE(hasty.size(), 1U);
    EXPECT_EQ(patient.size(), 4U) << "the best of twelve";
    const auto score = [](const std::vector<Hypothesis>& found) {
      return length_normalised(found.front(), 1.0);
    };
    EXPECT_GE(score(usual), score(hasty));
    EXPECT_GE(score(patient), score(usual));
    improves = improves || score(patient) > score(hasty);
  }
  EXPECT_TRUE(improves);
}

TEST(BeamSearch, NeverTakesWhatIsForbidden) {
  HistoryModel model({.vocab_size = 6});
  LogitsProcessors rules;
  rules.push_back(std::make_unique<SuppressTokens>(TokenIds{0, 2}, 6, torch::kCPU));
  const auto found = beam_search(model, torch::kCPU, {{1}, {3, 4}}, rules, {.max_new_tokens = 6, .ends = {5}},
                                 {.beams = 50});
  size_t n = 0;
  for (const auto& hypotheses : found) {
    for (const auto& hypothesis : hypotheses) {
      ++n;
      for (const int64_t id : hypothesis.ids) EXPECT_TRUE(id != 0 && id != 2);
    }
  }
  EXPECT_EQ(n, 100U);
}

TEST(BeamSearch, RefusesLogitsThatAreNotNumbers) {
  auto table = torch::zeros({3, 3});
  table[1][2] = std::numeric_limits<float>::quiet_NaN();
  BigramModel model(table);
  EXPECT_THROW(beam_search(model, torch::kCPU, {{0}}, kNoRules, {.max_new_tokens = 5}, {.beams = 3}),
               CheckpointError);
}

}  // namespace
}  // namespace zoo

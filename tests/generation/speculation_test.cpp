#include "generation/speculation.h"

#include <cmath>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "models/inference_scope.h"
#include "tests/support/fake_models.h"
#include "tests/support/requests.h"
#include "tests/support/small_models.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using zoo::testing::BigramModel;
using zoo::testing::described;
using zoo::testing::greedy;
using zoo::testing::HistoryModel;
using zoo::testing::requests;
using zoo::testing::sampled;
using zoo::testing::varied_configs;
using zoo::testing::written;

TokenIds looked_up(const TokenIds& prompt, const TokenIds& generated, int64_t most = 3) {
  return PromptLookup().propose({prompt, generated}, most, {}).tokens;
}

TEST(PromptLookup, ProposesWhatFollowedTheNewestTokensBefore) {
  EXPECT_THAT(looked_up({5, 1, 2, 3, 4, 9, 1}, {2}), ElementsAre(3, 4, 9));
  EXPECT_THAT(looked_up({5, 1, 2, 3, 4, 9, 1}, {2}, 1), ElementsAre(3));
  EXPECT_THAT(looked_up({1, 2}, {7, 1, 2}), ElementsAre(7, 1, 2)) << "of the prompt and of the output";
  EXPECT_THAT(looked_up({1, 2, 8, 1, 2}, {9, 1, 2}), ElementsAre(9, 1, 2)) << "the latest of equal places";
  EXPECT_THAT(looked_up({3, 1, 2, 8, 6, 1, 2, 9, 3, 1, 2}, {}), ElementsAre(8, 6, 1)) << "most tokens agree";
  EXPECT_THAT(looked_up({1, 2, 3}, {4}), ElementsAre()) << "nothing stands twice";
  EXPECT_THAT(looked_up({2, 3, 4}, {9, 2}), ElementsAre()) << "one token alone says little";
  EXPECT_THAT(looked_up({}, {7}), ElementsAre());
}

/// What a proposer adds to requests.
using MakeProposer = std::function<std::unique_ptr<Proposer>()>;

std::vector<GenerationRequest> with_proposals(std::vector<GenerationRequest> asked, const MakeProposer& make,
                                              int64_t n = 4) {
  for (auto& request : asked) {
    request.make_proposer = make;
    request.n_proposed = n;
  }
  return asked;
}

void expect_same_outputs(const std::vector<Hypothesis>& found, const std::vector<Hypothesis>& expected,
                         const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].ids, expected[i].ids) << what << ", output " << i;
    EXPECT_EQ(found[i].logprobs, expected[i].logprobs) << what << ", output " << i;
  }
}

const std::vector<TokenIds> kPrompts = {
    {1, 2, 3, 1, 2}, {4}, {7, 7, 7, 7}, {5, 6, 5, 6, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 1}};

TEST(Speculation, GreedyOutputsStayTheSame) {
  const SearchLimits limits{.max_new_tokens = 40, .ends = {8}};
  HistoryModel model({.vocab_size = 9, .max_length = 24}),
      other({.vocab_size = 9, .spread = 2, .max_length = 15});
  BigramModel cycle(torch::eye(9).roll(1, 1) * 5.0);
  const auto expected = written(model, requests(kPrompts, limits));
  const auto cycling = written(cycle, requests(kPrompts, limits));
  for (const int64_t n : {1, 4, 6}) {
    const MakeProposer lookup = [] { return std::make_unique<PromptLookup>(); };
    const MakeProposer itself = [&] { return std::make_unique<DraftModel>(model, torch::kCPU, greedy()); };
    const MakeProposer another = [&] { return std::make_unique<DraftModel>(other, torch::kCPU, greedy()); };
    for (const auto& make : {lookup, itself, another})
      expect_same_outputs(written(model, with_proposals(requests(kPrompts, limits), make, n)), expected,
                          std::to_string(n) + " tokens");
    expect_same_outputs(written(cycle, with_proposals(requests(kPrompts, limits), lookup, n)), cycling,
                        "cycle");
  }
}

TEST(Speculation, TokensOfTheModelItselfAreAllAccepted) {
  HistoryModel model({.vocab_size = 9});
  const auto asked = requests({{1, 2}}, {.max_new_tokens = 21});
  model.tokens_read = 0;
  const auto output =
      written(model, with_proposals(
                         asked, [&] { return std::make_unique<DraftModel>(model, torch::kCPU, greedy()); }))
          .front();
  EXPECT_EQ(output.n_proposed, 16) << "four times four, and the first token and one more of each step";
  EXPECT_EQ(output.n_accepted, 16);
}

TEST(Speculation, TokensBehindAnEndAreNotAccepted) {
  BigramModel cycle(torch::eye(9).roll(1, 1) * 5.0);
  const auto asked = requests({{5}}, {.max_new_tokens = 40, .ends = {8}});
  const auto output =
      written(cycle, with_proposals(
                         asked, [&] { return std::make_unique<DraftModel>(cycle, torch::kCPU, greedy()); }))
          .front();
  EXPECT_THAT(output.ids, ElementsAre(6, 7, 8));
  EXPECT_EQ(output.n_proposed, 4);
  EXPECT_EQ(output.n_accepted, 2);
}

TEST(Speculation, RefusedTokensAreTakenBack) {
  /// Proposes tokens that are always wrong in the second place.
  struct Liar final : Proposer {
    explicit Liar(HistoryModel& model) : truth(model) {}
    Proposal propose(const SequenceView& text, int64_t most, const Draw&) override {
      TokenIds ids(text.prompt.begin(), text.prompt.end());
      ids.insert(ids.end(), text.generated.begin(), text.generated.end());
      const auto next = truth.logprobs_after(ids).argmax().item<int64_t>();
      ids.push_back(next);
      const auto second = truth.logprobs_after(ids).argmax().item<int64_t>();
      TokenIds tokens{next, (second + 1) % 9, 0, 0};
      tokens.resize(static_cast<size_t>(std::min<int64_t>(most, 4)));
      return {.tokens = tokens};
    }
    HistoryModel& truth;
  };
  HistoryModel model({.vocab_size = 9});
  const auto asked = requests(kPrompts, {.max_new_tokens = 21});
  const auto expected = written(model, asked);
  const auto found = written(model, with_proposals(asked, [&] { return std::make_unique<Liar>(model); }));
  expect_same_outputs(found, expected, "a liar");
  EXPECT_EQ(found[0].n_accepted, 10);
}

TEST(Speculation, DrawnOutputsStayTheSameWithLookup) {
  auto table = torch::eye(9).roll(1, 1) * 4.0;
  BigramModel model(table);
  const auto asked = requests(kPrompts, {.max_new_tokens = 60, .ends = {}}, sampled(3));
  const auto found = written(model, with_proposals(asked, [] { return std::make_unique<PromptLookup>(); }));
  expect_same_outputs(found, written(model, asked), "lookup");
  int64_t accepted = 0;
  for (const auto& output : found) accepted += output.n_accepted;
  EXPECT_GT(accepted, 50);
}

/// The chi-square statistic of counted pairs of tokens, and the number of pairs with a probability above 0.
TEST(Speculation, DrawnTokensAreDistributedAsTheModelSays) {
  constexpr int64_t kTokens = 4, kOutputs = 6000;
  torch::manual_seed(3);
  const auto table = torch::randn({kTokens, kTokens}) * 1.2;
  BigramModel model(table), draft(torch::randn({kTokens, kTokens}) * 1.2);
  const auto rules = sampled(11);
  GenerationRequest request{.prompt = {1}, .rules = rules, .limits = {.max_new_tokens = 4}, .draws = {}};
  for (uint64_t s = 0; s < kOutputs; ++s) request.draws.push_back({.sample = s});
  request.make_proposer = [&] { return std::make_unique<DraftModel>(draft, torch::kCPU, rules); };
  const auto outputs = written(model, {request}, {.most_rows = 8});

  // Tokens 1 to 3 of an output are proposed together, after token 0.
  const auto p = table.to(torch::kDouble).softmax(1);
  auto counts = torch::zeros({kTokens, kTokens, kTokens, kTokens}, torch::kDouble);
  int64_t accepted = 0, proposed = 0;
  for (const auto& output : outputs) {
    ASSERT_EQ(output.ids.size(), 4U);
    counts[output.ids[0]][output.ids[1]][output.ids[2]][output.ids[3]] += 1;
    accepted += output.n_accepted, proposed += output.n_proposed;
  }
  auto expected = torch::empty_like(counts);
  for (int64_t a = 0; a < kTokens; ++a)
    for (int64_t b = 0; b < kTokens; ++b)
      for (int64_t c = 0; c < kTokens; ++c) expected[a][b][c] = p[1][a] * p[a][b] * p[b][c] * p[c] * kOutputs;
  const auto is_likely = expected.gt(5);
  const double statistic =
      ((counts - expected).pow(2) / expected).masked_select(is_likely).sum().item<double>();
  const auto freedom = is_likely.sum().item<double>();
  // Wilson and Hilferty's normal approximation: 3.1 standard deviations are one of a thousand.
  const double deviation =
      (std::cbrt(statistic / freedom) - (1 - 2 / (9 * freedom))) / std::sqrt(2 / (9 * freedom));
  EXPECT_LT(deviation, 3.1) << statistic << " with " << freedom << " degrees of freedom";
  EXPECT_GT(freedom, 60);
  EXPECT_GT(accepted, proposed / 5);
  EXPECT_LT(accepted, proposed * 9 / 10) << "some should be refused";
}

/// In whole models, not a bit changes.
class SpeculationOfModels : public ::testing::TestWithParam<Architecture> {};

TEST_P(SpeculationOfModels, GreedyOutputsStayTheSame) {
  size_t n_models = 0;
  for (const auto& config : varied_configs(GetParam())) {
    // Several queries with relative positions of Shaw are multiplied by LibTorch.
    if (testing::forgets_tokens(config) || config.position == Position::shaw) continue;
    const auto model = testing::random_model(config);
    const InferenceScope scope(*model);
    auto& writer = *model->generative();
    const auto asked = requests(kPrompts, {.max_new_tokens = 25, .ends = {0}});
    const MakeProposer lookup = [] { return std::make_unique<PromptLookup>(); };
    const auto expected = written(writer, asked);
    expect_same_outputs(written(writer, with_proposals(asked, lookup)), expected, described(config));
    if (GetParam() == Architecture::decoder) {
      const MakeProposer itself = [&] { return std::make_unique<DraftModel>(writer, torch::kCPU, greedy()); };
      expect_same_outputs(written(writer, with_proposals(asked, itself)), expected, described(config));
    }
    ++n_models;
  }
  EXPECT_GT(n_models, 12U);
}

INSTANTIATE_TEST_SUITE_P(Families, SpeculationOfModels,
                         ::testing::ValuesIn(testing::kGenerativeArchitectures),
                         [](const auto& param) { return std::string(name_of(param.param)); });

}  // namespace
}  // namespace zoo

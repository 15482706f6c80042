#include "generation/scheduler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/error.h"
#include "io/config/config_file.h"
#include "models/families/model_keys.h"
#include "models/inference_scope.h"
#include "models/stack.h"
#include "tests/support/fake_models.h"
#include "tests/support/requests.h"
#include "tests/support/small_models.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using zoo::testing::BigramModel;
using zoo::testing::described;
using zoo::testing::greedy;
using zoo::testing::HistoryModel;
using zoo::testing::requests;
using zoo::testing::sampled;
using zoo::testing::varied_configs;
using zoo::testing::written;

std::vector<Hypothesis> run(GenerativeModel& model, const std::vector<TokenIds>& prompts,
                            const SearchLimits& limits, const SchedulerOptions& options = {}) {
  return written(model, requests(prompts, limits), options);
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
  const SearchLimits limits{.max_new_tokens = 12, .ends = {0}};
  std::vector<GenerationRequest> asked;
  for (const auto& [prompt, ids] : {std::pair<uint64_t, TokenIds>{0, {1, 2, 3}}, {1, {4}}}) {
    asked.push_back({.prompt = ids,
                     .rules = sampled(42),
                     .limits = limits,
                     .draws = {{.prompt = prompt, .sample = 0}, {.prompt = prompt, .sample = 1}}});
  }
  const auto together = written(model, asked);
  ASSERT_EQ(together.size(), 4U);
  for (size_t i = 0; i < 4; ++i) {
    auto alone = asked[i / 2];
    alone.draws = {asked[i / 2].draws[i % 2]};
    EXPECT_EQ(written(model, {alone}).front().ids, together[i].ids) << i;
  }
  EXPECT_NE(together[0].ids, together[1].ids);
  asked[0].rules = sampled(43);
  EXPECT_NE(written(model, asked)[0].ids, together[0].ids);
}

TEST(Sampling, ReportsTheLogprobsOfTheModelNotOfTheProcessors) {
  HistoryModel model({.vocab_size = 6});
  LogitsProcessors rules;
  rules.push_back(std::make_unique<Temperature>(5.0));
  rules.push_back(std::make_unique<TopK>(3));
  const auto output =
      written(model, requests({{2}}, {.max_new_tokens = 8}, sampled(1, std::move(rules)))).front();
  TokenIds text = {2};
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
  written(model, requests({{2, 0}}, {.max_new_tokens = 2}, greedy(std::move(rules))));
  EXPECT_THAT(*seen, ElementsAre(TokenIds{2, 0}, TokenIds{}, TokenIds{2, 0}, TokenIds{1}));
}

TEST(Scheduler, RefusesLogitsThatAreNotNumbers) {
  auto table = torch::zeros({3, 3});
  table[1][2] = std::numeric_limits<float>::quiet_NaN();
  table[0][1] = 4;
  BigramModel model(table);
  EXPECT_THROW(run(model, {{0}}, {.max_new_tokens = 5}), CheckpointError);
  // Also if the NaN belongs to a token that could not have been chosen.
  LogitsProcessors rules;
  rules.push_back(std::make_unique<SuppressTokens>(TokenIds{2}, 3, torch::kCPU));
  EXPECT_THROW(written(model, requests({{1}}, {.max_new_tokens = 5}, greedy(std::move(rules)))),
               CheckpointError);
}

/// What each request gives alone, in a scheduler of its own that reads its prompt in the same pieces.
std::vector<std::vector<Hypothesis>> each_alone(GenerativeModel& model,
                                                const std::vector<GenerationRequest>& asked, int64_t piece) {
  std::vector<std::vector<Hypothesis>> result;
  for (const auto& request : asked) result.push_back(written(model, {request}, {.prompt_piece = piece}));
  return result;
}

/// Pseudo-random whole numbers in 0 … n - 1.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : seed_(seed) {}
  int64_t below(int64_t n) {
    return static_cast<int64_t>(uniform(seed_, {.position = count_++}) * static_cast<double>(n));
  }

 private:
  uint64_t seed_, count_ = 0;
};

/// Requests with prompts of any length, some of which begin alike, of one to three outputs, greedy or drawn.
std::vector<GenerationRequest> varied_requests(size_t n, int64_t vocab_size, int64_t longest,
                                               Numbers& numbers) {
  TokenIds beginning;
  for (int64_t i = 0; i < longest; ++i) beginning.push_back(numbers.below(vocab_size));
  const auto drawn = sampled(5), likeliest = greedy();
  std::vector<GenerationRequest> result;
  for (size_t i = 0; i < n; ++i) {
    const int64_t length = 1 + numbers.below(longest);
    const int64_t n_alike = numbers.below(3) == 0 ? 0 : numbers.below(length + 1);
    GenerationRequest request{.prompt = {beginning.begin(), beginning.begin() + n_alike},
                              .rules = numbers.below(2) == 0 ? drawn : likeliest,
                              .limits = {.max_new_tokens = 1 + numbers.below(12), .ends = {2}},
                              .draws = {}};
    while (std::ssize(request.prompt) < length) request.prompt.push_back(numbers.below(vocab_size));
    const int64_t n_outputs = 1 + numbers.below(3);
    for (int64_t s = 0; s < n_outputs; ++s)
      request.draws.push_back({.prompt = i, .sample = static_cast<uint64_t>(s)});
    result.push_back(std::move(request));
  }
  return result;
}

/// Requests come and go: between two steps some are submitted, and the finished ones are taken.
std::vector<std::vector<Hypothesis>> coming_and_going(GenerativeModel& model,
                                                      const std::vector<GenerationRequest>& asked,
                                                      const SchedulerOptions& options, Numbers& numbers) {
  Scheduler scheduler(model, torch::kCPU, options);
  std::vector<std::vector<Hypothesis>> result(asked.size());
  std::set<size_t> there;
  for (size_t next = 0; next < asked.size() || !there.empty();) {
    for (int64_t n = numbers.below(4); n > 0 && next < asked.size(); --n)
      there.insert(scheduler.submit(asked[next++]));
    scheduler.step();
    for (auto request = there.begin(); request != there.end();) {
      if (!scheduler.is_finished(*request)) {
        ++request;
        continue;
      }
      result[*request] = scheduler.take(*request);
      request = there.erase(request);
    }
  }
  return result;
}

/// Equal to the last bit.
void expect_same(const std::vector<std::vector<Hypothesis>>& found,
                 const std::vector<std::vector<Hypothesis>>& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].size(), expected[i].size()) << what << ", request " << i;
    for (size_t s = 0; s < found[i].size(); ++s) {
      EXPECT_EQ(found[i][s].ids, expected[i][s].ids) << what << ", request " << i << ", output " << s;
      EXPECT_EQ(found[i][s].logprobs, expected[i][s].logprobs)
          << what << ", request " << i << ", output " << s;
    }
  }
}

TEST(Scheduler, RequestsThatComeAndGoGiveWhatEachGivesAlone) {
  HistoryModel model({.vocab_size = 9, .max_length = 24});
  Numbers numbers(1);
  const auto asked = varied_requests(300, 9, 40, numbers);
  const auto alone = each_alone(model, asked, 4);
  for (const int64_t rows : {1, 2, 7, 64}) {
    for (const int64_t bytes : {0, 2000}) {
      expect_same(coming_and_going(model, asked,
                                   {.most_rows = rows, .prompt_piece = 4, .prefix_bytes = bytes}, numbers),
                  alone, std::to_string(rows) + " rows, " + std::to_string(bytes) + " bytes");
    }
    for (const int64_t shared : {1, 5}) {
      expect_same(coming_and_going(model, asked,
                                   {.most_rows = rows, .prompt_piece = 4, .shared_rows = shared}, numbers),
                  alone, std::to_string(rows) + " rows, " + std::to_string(shared) + " shared");
    }
  }
}

TEST(Scheduler, ReadsWhatPromptsBeginWithOnce) {
  const TokenIds beginning = {1, 2, 3, 4, 5, 6, 7, 8, 1, 2};
  std::vector<TokenIds> prompts;
  for (int64_t i = 0; i < 5; ++i) {
    prompts.push_back(beginning);
    prompts.back().insert(prompts.back().end(), {i, i, i});
  }
  const auto tokens_read = [&](int64_t bytes) {
    HistoryModel model({.vocab_size = 9});
    run(model, prompts, {.max_new_tokens = 1}, {.prompt_piece = 4, .prefix_bytes = bytes});
    return model.tokens_read;
  };
  EXPECT_EQ(tokens_read(0), 5 * 13);
  // The first two prompts are read; the second one shows that both begin alike.
  EXPECT_EQ(tokens_read(1 << 20), 2 * 13 + 3 * 5);
  EXPECT_EQ(tokens_read(20), 5 * 13) << "the states are larger";
}

TEST(Scheduler, BeginsRequestsByPriorityAndThenByArrival) {
  HistoryModel model({.vocab_size = 9});
  Scheduler scheduler(model, torch::kCPU, {.most_rows = 1});
  const std::vector<int64_t> priorities = {0, 5, -1, 0, 5, -1};
  std::vector<size_t> numbers;
  for (const int64_t priority : priorities) {
    auto request = requests({{1, 2}}, {.max_new_tokens = 3}).front();
    request.priority = priority;
    numbers.push_back(scheduler.submit(std::move(request)));
  }
  std::vector<size_t> order;
  while (scheduler.step()) {
    for (const size_t number : numbers) {
      if (scheduler.is_finished(number) && std::ranges::find(order, number) == order.end())
        order.push_back(number);
    }
  }
  EXPECT_THAT(order, ElementsAre(2, 5, 0, 3, 1, 4));
}

TEST(Scheduler, AnOutputThatOutgrowsTheModelKeepsItsPlace) {
  HistoryModel model({.vocab_size = 9, .max_length = 8});
  Scheduler scheduler(model, torch::kCPU, {.most_rows = 1});
  const auto submit = [&](int64_t n, int64_t priority) {
    auto request = requests({{1, 2}}, {.max_new_tokens = n}).front();
    request.priority = priority;
    return scheduler.submit(std::move(request));
  };
  const auto first = submit(30, 5);
  scheduler.step();
  const auto second = submit(3, -5);
  for (size_t n = 1; !scheduler.is_finished(first); ++n) {
    EXPECT_TRUE(scheduler.outputs(second).front().ids.empty()) << n;
    EXPECT_EQ(scheduler.outputs(first).front().ids.size(), n);
    scheduler.step();
  }
  while (scheduler.step()) {
  }
  EXPECT_EQ(scheduler.outputs(second).front().ids.size(), 3u);
}

// Whatever its priority is, an output that outgrows the model is written to its end. Those that outgrow it
// together go on in the order of their priority, though others began earlier.
TEST(Scheduler, OutputsThatOutgrowTheModelGoOnByPriority) {
  HistoryModel model({.vocab_size = 9, .max_length = 8});
  // Less is read in a step than outgrows the model.
  Scheduler scheduler(model, torch::kCPU, {.most_rows = 8, .prompt_piece = 2});
  std::vector<size_t> numbers;
  for (const int64_t priority : {5, 5, 5, -5, -5}) {
    auto request = requests({{1, 2}}, {.max_new_tokens = 40}).front();
    request.priority = priority;
    numbers.push_back(scheduler.submit(std::move(request)));
    scheduler.step();
    ASSERT_FALSE(scheduler.outputs(numbers.back()).front().ids.empty());
  }
  std::vector<size_t> finished;
  while (scheduler.step()) {
    for (const size_t number : numbers) {
      if (scheduler.is_finished(number) && std::ranges::find(finished, number) == finished.end())
        finished.push_back(number);
    }
  }
  EXPECT_THAT(finished, ::testing::UnorderedElementsAreArray(numbers));
  finished.resize(2);
  EXPECT_THAT(finished, ::testing::UnorderedElementsAre(3, 4));
  const auto alone = run(model, {{1, 2}}, {.max_new_tokens = 40}).front().ids;
  for (const size_t number : numbers) {
    EXPECT_EQ(scheduler.outputs(number).front().ids, alone) << number;
    EXPECT_EQ(scheduler.outputs(number).front().end, OutputEnd::length);
  }
}

TEST(Scheduler, ClientsAndRequestsShareThePlaces) {
  HistoryModel model({.vocab_size = 9});
  Scheduler scheduler(model, torch::kCPU, {.most_rows = 8, .most_of_request = 4, .most_of_client = 6});
  const auto submit = [&](const std::string& client, size_t n_outputs) {
    auto request = requests({{1, 2}}, {.max_new_tokens = 30}).front();
    request.draws.resize(n_outputs);
    request.client = client;
    return scheduler.submit(std::move(request));
  };
  const auto n_under_way = [&](size_t request) {
    return std::ranges::count_if(scheduler.outputs(request),
                                 [](const Hypothesis& output) { return !output.ids.empty() && !output.end; });
  };
  const auto large = submit("a", 20);
  scheduler.step();
  EXPECT_EQ(n_under_way(large), 4);
  const auto second = submit("a", 5), third = submit("a", 1);
  scheduler.step();
  EXPECT_EQ(n_under_way(second), 2);
  EXPECT_EQ(n_under_way(third), 0);
  const auto other = submit("b", 1), program = submit("", 3);
  scheduler.step();
  EXPECT_EQ(n_under_way(other), 1);
  EXPECT_EQ(n_under_way(program), 1);
  while (scheduler.step()) {
    EXPECT_LE(n_under_way(large), 4);
    EXPECT_LE(n_under_way(large) + n_under_way(second) + n_under_way(third), 6);
  }
  for (const size_t request : {large, second, third, other, program}) {
    for (const auto& output : scheduler.outputs(request)) EXPECT_EQ(output.ids.size(), 30u);
  }
}

TEST(Scheduler, OutputsOfALargeRequestPauseForOthers) {
  HistoryModel model({.vocab_size = 9});
  Scheduler scheduler(model, torch::kCPU, {.most_rows = 8, .most_of_client = 6, .shared_rows = 4});
  const auto submit = [&](size_t n_outputs, int64_t n_tokens) {
    auto request = requests({{1, 2}}, {.max_new_tokens = n_tokens}).front();
    request.draws.resize(n_outputs);
    request.client = "a";
    return scheduler.submit(std::move(request));
  };
  const auto n_written = [&](size_t request) {
    size_t n = 0;
    for (const auto& output : scheduler.outputs(request)) n += output.ids.size();
    return n;
  };
  const auto large = submit(20, 30);
  scheduler.step();
  scheduler.step();
  EXPECT_EQ(n_written(large), 12U) << "alone it has all places of its client";
  std::vector<size_t> small;
  for (int i = 0; i < 5; ++i) small.push_back(submit(1, 10));
  scheduler.step();  // their prompts are read
  const size_t before = n_written(large);
  for (size_t step = 1; step < 10; ++step) {
    scheduler.step();
    if (step < 9) {
      EXPECT_EQ(n_written(large), before + step) << "one output grows";
    }
    for (const size_t request : small) EXPECT_EQ(n_written(request), step + 1);
  }
  for (const size_t request : small) EXPECT_TRUE(scheduler.is_finished(request));
  const auto second = submit(20, 30);
  scheduler.step();
  const size_t of_large = n_written(large), of_second = n_written(second);
  for (int step = 0; step < 20; ++step) scheduler.step();
  EXPECT_NEAR(static_cast<double>(n_written(large) - of_large), 40, 2);
  EXPECT_NEAR(static_cast<double>(n_written(second) - of_second), 40, 2);
  while (scheduler.step()) {
  }
  for (const size_t request : {large, second})
    for (const auto& output : scheduler.outputs(request)) EXPECT_EQ(output.ids.size(), 30U);
}

TEST(Scheduler, AddsATokenToEachOutputWhileItReadsALongPrompt) {
  HistoryModel model({.vocab_size = 9});
  Scheduler scheduler(model, torch::kCPU, {.prompt_piece = 4});
  const auto first = scheduler.submit(requests({{1, 2}}, {.max_new_tokens = 30}).front());
  scheduler.step();
  EXPECT_EQ(scheduler.outputs(first).front().ids.size(), 1U);
  const auto second = scheduler.submit(requests({TokenIds(10, 3)}, {.max_new_tokens = 30}).front());
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(scheduler.outputs(second).front().ids.empty());
    scheduler.step();
    EXPECT_EQ(scheduler.outputs(first).front().ids.size(), i + 2);
  }
  EXPECT_EQ(scheduler.outputs(second).front().ids.size(), 1U);
}

/// Fails for sequences with `fails_at` generated tokens.
class FailsAt final : public LogitsProcessor {
 public:
  explicit FailsAt(size_t fails_at) : fails_at_(fails_at) {}
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override {
    for (const auto& row : rows)
      if (row.generated.size() == fails_at_) throw UsageError("this rule fails");
    return logits;
  }

 private:
  size_t fails_at_;
};

/// Proposes the token 1 twice, and fails at its second call.
class FailingProposer final : public Proposer {
 public:
  Proposal propose(const SequenceView&, int64_t, const Draw&) override {
    if (n_calls_++ == 1) throw UsageError("this proposer fails");
    return {.tokens = {1, 1}};
  }

 private:
  int n_calls_ = 0;
};

TEST(Scheduler, AnErrorOfOneRequestEndsThatRequestOnly) {
  HistoryModel model({.vocab_size = 9, .max_length = 24});
  Numbers numbers(3);
  auto asked = varied_requests(12, 9, 20, numbers);
  const auto alone = each_alone(model, asked, 4);
  for (const size_t fails_at : {0, 1, 3}) {
    for (const size_t failing : {0, 5, 11}) {
      for (const bool in_proposer : {false, true}) {
        auto with_failure = asked;
        auto& bad = with_failure[failing];
        bad.limits = {.max_new_tokens = 9};
        bad.draws = {Draw(), Draw(), Draw()};
        if (in_proposer) {
          bad.make_proposer = [] { return std::make_unique<FailingProposer>(); };
        } else {
          LogitsProcessors rules;
          rules.push_back(std::make_unique<FailsAt>(fails_at));
          bad.rules = greedy(std::move(rules));
        }
        Scheduler scheduler(model, torch::kCPU, {.most_rows = 5, .prompt_piece = 4});
        for (const auto& request : with_failure) scheduler.submit(request);
        while (scheduler.step()) {
        }
        EXPECT_THROW(scheduler.require(failing), UsageError);
        EXPECT_TRUE(scheduler.is_finished(failing));
        scheduler.take(failing);
        for (size_t i = 0; i < asked.size(); ++i) {
          if (i == failing) continue;
          EXPECT_EQ(scheduler.problem(i), nullptr);
          expect_same({scheduler.take(i)}, {alone[i]}, "request " + std::to_string(i));
        }
      }
    }
  }
}

TEST(Scheduler, ForgetsARequestAtAnyTime) {
  HistoryModel model({.vocab_size = 9, .max_length = 24});
  Numbers numbers(2);
  const auto asked = varied_requests(12, 9, 20, numbers);
  const auto alone = each_alone(model, asked, 4);
  for (int64_t n_steps = 0; n_steps < 12; ++n_steps) {
    for (const size_t forgotten : {0, 3, 11}) {
      const auto shared = n_steps % 2 == 0 ? std::optional<int64_t>(2) : std::nullopt;
      Scheduler scheduler(model, torch::kCPU, {.most_rows = 5, .prompt_piece = 4, .shared_rows = shared});
      for (const auto& request : asked) scheduler.submit(request);
      for (int64_t i = 0; i < n_steps; ++i) scheduler.step();
      const auto so_far = scheduler.take(forgotten);
      ASSERT_EQ(so_far.size(), alone[forgotten].size());
      for (size_t s = 0; s < so_far.size(); ++s) {
        auto beginning = alone[forgotten][s].ids;
        beginning.resize(so_far[s].ids.size());
        EXPECT_EQ(so_far[s].ids, beginning);
      }
      while (scheduler.step()) {
      }
      for (size_t i = 0; i < asked.size(); ++i) {
        if (i == forgotten) continue;
        EXPECT_TRUE(scheduler.is_finished(i));
        expect_same({scheduler.take(i)}, {alone[i]}, std::to_string(n_steps) + " steps");
      }
    }
  }
}

/// Every kind of attention, in whole models: not a bit depends on the company.
class SchedulerOfModels : public ::testing::TestWithParam<Architecture> {};

struct Company {
  std::vector<std::vector<Hypothesis>> alone, together;
};

/// What requests with varied prompts give alone, and in each other's company.
Company in_company(const ModelConfig& config, uint64_t seed, CacheFormat cache = CacheFormat::fp32) {
  const auto model = testing::random_model(config);
  store_cache(*model, cache);
  const InferenceScope scope(*model);
  Numbers numbers(seed);
  const int64_t longest = config.architecture == Architecture::decoder ? 40 : 20;
  const auto asked = varied_requests(12, testing::kVocabulary, longest, numbers);
  Company result{.alone = each_alone(*model->generative(), asked, 8), .together = {}};
  result.together = coming_and_going(
      *model->generative(), asked,
      {.most_rows = 12, .prompt_piece = 8, .prefix_bytes = 1 << 20, .shared_rows = 5}, numbers);
  return result;
}

TEST_P(SchedulerOfModels, RequestsThatComeAndGoGiveWhatEachGivesAlone) {
  uint64_t seed = 3;
  for (const auto& config : varied_configs(GetParam())) {
    const auto found = in_company(config, seed++);
    expect_same(found.together, found.alone, described(config));
  }
}

TEST_P(SchedulerOfModels, OtherFormatsOfTheCacheDoNotDependOnTheCompanyEither) {
  for (const auto position : {Position::rotary, Position::t5, Position::shaw}) {
    const auto config = testing::small_config(GetParam(), position);
    const auto exact = in_company(config, 4);
    for (const auto format : {CacheFormat::bf16, CacheFormat::int8}) {
      const auto what = described(config) + ", " + std::string(name_of(format));
      const auto found = in_company(config, 4, format);
      expect_same(found.together, found.alone, what);
      size_t n_equal = 0, n_rounded = 0;
      for (size_t i = 0; i < exact.alone.size(); ++i) {
        const auto &first = exact.alone[i].front(), &rounded = found.alone[i].front();
        if (rounded.ids.front() != first.ids.front()) continue;
        ++n_equal;
        n_rounded += rounded.logprobs.front() == first.logprobs.front() ? 0 : 1;
        EXPECT_NEAR(rounded.logprobs.front(), first.logprobs.front(), 0.2) << what;
      }
      EXPECT_GT(n_equal, exact.alone.size() / 2) << what;
      EXPECT_GT(n_rounded, n_equal / 2) << what;
    }
  }
}

TEST_P(SchedulerOfModels, WindowsAndRunningStatesHaveNoOtherFormats) {
  auto config = testing::small_config(GetParam());
  for (const auto* const attention : {"{type: window, size: 4}", "linear"}) {
    ConfigFile::parse(std::string("attention: ") + attention, "test").read(config);
    const auto model = testing::random_model(config);
    EXPECT_THAT(
        [&] { store_cache(*model, CacheFormat::int8); },
        ThrowsMessage<UsageError>(HasSubstr("generation.cache int8 needs layers that keep the keys and "
                                            "values of all tokens")));
    store_cache(*model, CacheFormat::fp32);
  }
}

std::vector<ModelConfig> running_configs(Architecture architecture) {
  std::vector<ModelConfig> configs;
  for (const auto* const attention :
       {"linear", "performer", "[linear, full]", "delta", "convolution", "[{type: delta, conv: 0}, full]"}) {
    const std::string_view name(attention);
    if (architecture != Architecture::decoder && (name.find("delta") != name.npos || name == "convolution"))
      continue;
    configs.push_back(testing::small_config(architecture));
    ConfigFile::parse(std::string("attention: ") + attention, "test").read(configs.back());
  }
  return configs;
}

// LibTorch's products of running states add in an order that depends on the batch.
TEST_P(SchedulerOfModels, RunningStatesInCompanyDifferByRoundingAtMost) {
  uint64_t seed = 3;
  for (const auto& config : running_configs(GetParam())) {
    const auto found = in_company(config, seed++);
    for (size_t i = 0; i < found.alone.size(); ++i) {
      for (size_t s = 0; s < found.alone[i].size(); ++s) {
        const auto &alone = found.alone[i][s], &together = found.together[i][s];
        EXPECT_EQ(together.ids, alone.ids) << described(config) << ", request " << i;
        for (size_t t = 0; t < std::min(alone.ids.size(), together.ids.size()); ++t)
          EXPECT_NEAR(together.logprobs[t], alone.logprobs[t], 1e-4) << described(config);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, SchedulerOfModels, ::testing::ValuesIn(testing::kGenerativeArchitectures),
                         [](const auto& param) { return std::string(name_of(param.param)); });

}  // namespace
}  // namespace zoo

// Each parameter of the API is sent, and its effect is seen. What should happen is computed from the
// log-probabilities of the model itself.

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/serving/api_server.h"

namespace zoo {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr int64_t kEndToken = 28;  // of "writer": </s>

class ParametersOfTheApi : public testing::ApiTest {
 protected:
  /// A token that may follow, and its probability.
  struct Candidate {
    int64_t id;
    double probability;
  };

  static TokenIds ids(const std::string& text) { return writer().tokenizer().encode(text); }
  static const zoo::Run& writer() {
    static const zoo::Run run = Run::open(runs_->dir() / "writer");
    return run;
  }

  /// By id, the log-probability of each token after `read`, by the model itself.
  static std::vector<double> logprobs_after(TokenIds read) {
    const auto n = writer().tokenizer().vocab_size();
    read.push_back(0);  // any token: the last place of an echo tells what may stand there
    const auto scored =
        service_->complete("writer", CompletionRequest{.prompts = {read},
                                                       .options = {.max_new_tokens = 0},
                                                       .n_likeliest = n,
                                                       .echo = PromptEcho::text_and_logprobs});
    std::vector<double> result(static_cast<size_t>(n));
    for (const auto& [id, logprob] : scored.echoes[0].tokens.back().likeliest)
      result[static_cast<size_t>(id)] = logprob;
    return result;
  }
  static bool may_be_written(int64_t id) {
    const auto never = writer().tokenizer().never_generated();
    return std::ranges::find(never, id) == never.end();
  }
  /// What may follow `text` at this temperature, the likeliest first.
  static std::vector<Candidate> candidates(const std::string& text, double temperature) {
    std::vector<Candidate> result;
    const auto logprobs = logprobs_after(ids(text));
    for (size_t id = 0; id < logprobs.size(); ++id) {
      if (may_be_written(static_cast<int64_t>(id)))
        result.push_back({static_cast<int64_t>(id), std::exp(logprobs[id] / temperature)});
    }
    double sum = 0;
    for (const auto& candidate : result) sum += candidate.probability;
    for (auto& candidate : result) candidate.probability /= sum;
    std::ranges::sort(result, std::greater(), &Candidate::probability);
    return result;
  }
  /// The ids of the first tokens of 256 outputs.
  std::vector<int64_t> drawn(Json more) const {
    Json asked{{"n", 256}, {"max_tokens", 1}, {"logprobs", 0}, {"temperature", kTemperature}};
    asked.update(more);
    std::vector<int64_t> result;
    const auto answered = answer(std::move(asked));
    for (const auto& choice : answered["choices"]) {
      const auto& own = choice["logprobs"]["token_ids"];
      result.push_back(own.empty() ? kEndToken : own[0].get<int64_t>());
    }
    return result;
  }
  /// The first of `order` and nothing else are drawn with `more`, and others without.
  void expect_drawn(Json more, const std::vector<Candidate>& order, size_t n) const {
    SCOPED_TRACE(more.dump());
    std::set<int64_t> kept;
    double mass = 0;
    for (size_t i = 0; i < n; ++i) {
      kept.insert(order[i].id);
      mass += order[i].probability;
    }
    const auto is_kept = [&](int64_t id) { return kept.contains(id); };
    // So that 256 draws have one of each kind, whatever the last bits of a processor are.
    ASSERT_GT(mass, 0.1);
    ASSERT_LT(mass, 0.9);
    const auto without = drawn(Json::object()), with = drawn(std::move(more));
    EXPECT_FALSE(std::ranges::all_of(without, is_kept));
    EXPECT_TRUE(std::ranges::all_of(with, is_kept));
    for (size_t i = 0; i < n; ++i) {
      if (order[i].probability > 0.1 * mass) {
        EXPECT_EQ(std::ranges::count(with, order[i].id) > 0, true) << order[i].id;
      }
    }
  }

  static constexpr double kTemperature = 2.5;
};

TEST_F(ParametersOfTheApi, CutTheTokensOffThatTheirPapersSay) {
  const auto likely = candidates("abc", kTemperature);
  const auto sum = [](const std::vector<Candidate>& order, size_t n) {
    double total = 0;
    for (size_t i = 0; i < n; ++i) total += order[i].probability;
    return total;
  };
  constexpr size_t n = 3;
  // Half-way between what keeps one more token and one less.
  expect_drawn({{"top_k", n}}, likely, n);
  expect_drawn({{"top_p", (sum(likely, n - 1) + sum(likely, n)) / 2}}, likely, n);
  expect_drawn({{"min_p", (likely[n - 1].probability + likely[n].probability) / 2 / likely[0].probability}},
               likely, n);
  // Those whose information is nearest to the entropy come first.
  double entropy = 0;
  for (const auto& candidate : likely) entropy -= candidate.probability * std::log(candidate.probability);
  auto typical = likely;
  std::ranges::sort(typical, std::less(), [&](const Candidate& candidate) {
    return std::abs(-std::log(candidate.probability) - entropy);
  });
  expect_drawn({{"typical_p", (sum(typical, n - 1) + sum(typical, n)) / 2}}, typical, n);
  EXPECT_THAT(drawn({{"typical_p", 1e-9}}), Each(typical[0].id));
}

TEST_F(ParametersOfTheApi, AtTheirBoundsKeepOneTokenOrAll) {
  const Json asked{{"max_tokens", 20}, {"temperature", 1.5}};
  const auto greedy = text({{"max_tokens", 20}, {"temperature", 0}});
  const auto with = [&](const Json& more) {
    auto all = asked;
    all.update(more);
    return text(all);
  };
  for (const Json& one :
       {Json{{"top_k", 1}}, Json{{"top_p", 1e-9}}, Json{{"min_p", 1}}, Json{{"temperature", 1e-9}}})
    EXPECT_EQ(with(one), greedy) << one;
  const auto drawn = with(Json::object());
  EXPECT_NE(drawn, greedy);
  for (const Json& all :
       {Json{{"top_k", 0}}, Json{{"top_k", 1'000'000'000'000}}, Json{{"top_p", 1}}, Json{{"min_p", 0}},
        Json{{"typical_p", 1}}, Json{{"presence_penalty", 0}}, Json{{"frequency_penalty", 0}},
        Json{{"repetition_penalty", 1}}, Json{{"logit_bias", Json::object()}}, Json{{"top_p", nullptr}}})
    EXPECT_EQ(with(all), drawn) << all;
}

TEST_F(ParametersOfTheApi, PenaltiesLowerTheTokensThatTheOutputHas) {
  struct Penalties {
    double presence, frequency;
  };
  const Json asked{
      {"max_tokens", 24}, {"temperature", 0}, {"logprobs", 0}, {"logit_bias", Json::parse(kNoEnd)}};
  const auto plain = answer(asked)["choices"][0]["text"];
  for (const auto& [presence, frequency] : {Penalties{0, 0}, Penalties{1.5, 0}, Penalties{0, 1.5},
                                            Penalties{-2, 0}, Penalties{3, -0.5}, Penalties{100, 100}}) {
    SCOPED_TRACE(::testing::Message() << presence << ", " << frequency);
    auto with = asked;
    with.update({{"presence_penalty", presence}, {"frequency_penalty", frequency}});
    const auto choice = answer(with)["choices"][0];
    const auto written = choice["logprobs"]["token_ids"].get<TokenIds>();
    ASSERT_EQ(written.size(), 24u);
    auto read = ids("abc");
    std::vector<double> n_said(29);
    for (const int64_t token : written) {
      auto scores = logprobs_after(read);
      for (size_t id = 0; id < scores.size(); ++id) {
        scores[id] -= (n_said[id] > 0 ? presence : 0) + frequency * n_said[id];
        if (!may_be_written(static_cast<int64_t>(id)) || static_cast<int64_t>(id) == kEndToken)
          scores[id] = -1e9;
      }
      // Not the number of the token: two may be equal up to rounding.
      EXPECT_NEAR(scores[static_cast<size_t>(token)], *std::ranges::max_element(scores), 1e-3);
      ++n_said[static_cast<size_t>(token)];
      read.push_back(token);
    }
    if (presence == 100) {
      EXPECT_EQ(std::set(written.begin(), written.end()).size(), 24u);
    }
    if (presence == 0 && frequency == 0) {
      EXPECT_EQ(choice["text"], plain);
    }
  }
}

// Each changes an output as it changes that of a program that sets the option itself.
TEST_F(ParametersOfTheApi, AreTheOptionsOfAProgram) {
  struct Case {
    Json more;
    std::function<void(GenerationConfig&)> set;
  };
  const auto after = [](const std::string& text) { return writer().tokenizer().encode(text)[0]; };
  const int64_t g = after("g");
  const GenerationConfig plain{.max_new_tokens = 20, .temperature = 1.5, .seed = 4};
  const auto of_program = [&](const GenerationConfig& options) {
    return service_->complete("writer", CompletionRequest{.prompts = {"abcab"}, .options = options})
        .outputs[0]
        .text;
  };
  const auto without = of_program(plain);
  ASSERT_GE(without.size(), 3u);
  const std::vector<Case> cases = {
      {{{"temperature", 0}}, [](auto& o) { o.temperature = 0; }},
      {{{"temperature", 9}}, [](auto& o) { o.temperature = 9; }},
      {{{"top_k", 2}}, [](auto& o) { o.top_k = 2; }},
      {{{"top_p", 0.3}}, [](auto& o) { o.top_p = 0.3; }},
      {{{"min_p", 0.5}}, [](auto& o) { o.min_p = 0.5; }},
      {{{"typical_p", 0.2}}, [](auto& o) { o.typical_p = 0.2; }},
      {{{"epsilon_cutoff", 0.2}}, [](auto& o) { o.epsilon_cutoff = 0.2; }},
      {{{"eta_cutoff", 0.9}}, [](auto& o) { o.eta_cutoff = 0.9; }},
      {{{"repetition_penalty", 3}}, [](auto& o) { o.repetition_penalty = 3; }},
      {{{"encoder_repetition_penalty", 4}}, [](auto& o) { o.encoder_repetition_penalty = 4; }},
      {{{"presence_penalty", -6}}, [](auto& o) { o.presence_penalty = -6; }},
      {{{"frequency_penalty", -5}}, [](auto& o) { o.frequency_penalty = -5; }},
      {{{"no_repeat_ngram_size", 1}}, [](auto& o) { o.no_repeat_ngram_size = 1; }},
      {{{"encoder_no_repeat_ngram_size", 1}}, [](auto& o) { o.encoder_no_repeat_ngram_size = 1; }},
      {{{"regex", "(gh){4}"}}, [](auto& o) { o.regex = "(gh){4}"; }},
      {{{"json_schema", {{"enum", {111, 222}}}}}, [](auto& o) { o.json_schema = R"({"enum": [111, 222]})"; }},
      {{{"stop", without.substr(1, 1)}}, [&](auto& o) { o.stop = {without.substr(1, 1)}; }},
      {{{"bad_words", {without.substr(0, 1)}}}, [&](auto& o) { o.bad_words = {without.substr(0, 1)}; }},
      {{{"suppress_tokens", {after(without)}}}, [&](auto& o) { o.suppress_tokens = {after(without)}; }},
      {{{"suppress_first_tokens", {after(without)}}},
       [&](auto& o) { o.suppress_first_tokens = {after(without)}; }},
      {{{"forced_last_token", g}, {"max_tokens", 2}},
       [&](auto& o) { o.forced_last_token = g, o.max_new_tokens = 2; }},
      {{{"seed", 5}}, [](auto& o) { o.seed = 5; }}};
  for (const auto& [more, set] : cases) {
    auto options = plain;
    set(options);
    Json asked{{"prompt", "abcab"}, {"max_tokens", 20}, {"temperature", 1.5}, {"seed", 4}};
    asked.update(more);
    const auto found = text(asked);
    EXPECT_EQ(found, of_program(options)) << more;
    EXPECT_NE(found, without) << more;
  }
  const Json endless{{"ignore_eos", true}, {"logit_bias", {{"28", 100}}}, {"max_tokens", 5}};
  EXPECT_EQ(answer(endless)["usage"]["completion_tokens"], 5);
}

// Proposed tokens change no output, also not beside outputs without them.
TEST_F(ParametersOfTheApi, PromptLookupProposesTokens) {
  const auto steps = [] { return service_->models()[0].counts.steps; };
  ASSERT_EQ(service_->models()[0].card.id, "writer");
  const Json asked{{"prompt", "abcabcabcabc"},
                   {"max_tokens", 60},
                   {"temperature", 0},
                   {"logit_bias", Json::parse(R"({"28": -100, "0": 60, "1": 60})")}};
  const auto before = steps();
  const auto plain = answer(asked)["choices"][0]["text"];
  const auto between = steps();
  auto proposing = asked;
  proposing["prompt_lookup"] = 6;
  EXPECT_EQ(answer(proposing)["choices"][0]["text"], plain);
  EXPECT_LT((steps() - between) * 4, (between - before) * 3);
  proposing.update({{"temperature", 1.5}, {"seed", 3}, {"n", 4}});
  auto drawn = proposing;
  drawn["prompt_lookup"] = 0;
  EXPECT_EQ(answer(proposing)["choices"], answer(drawn)["choices"]);
}

TEST_F(ParametersOfTheApi, RepetitionPenaltyAlsoCountsThePrompt) {
  const Generator generator(writer().model(), writer().tokenizer());
  const auto generated = [&](double penalty) {
    return generator
        .generate(std::vector<std::string>{"abc"},
                  {.max_new_tokens = 20, .temperature = 0, .repetition_penalty = penalty})[0]
        .outputs[0]
        .text;
  };
  std::set<std::string> different;
  for (const double penalty : {0.5, 1.0, 1.3, 4.0}) {
    const auto found = text({{"max_tokens", 20}, {"temperature", 0}, {"repetition_penalty", penalty}});
    EXPECT_EQ(found, generated(penalty)) << penalty;
    different.insert(found);
  }
  EXPECT_GE(different.size(), 3u);
}

TEST_F(ParametersOfTheApi, BiasesForceAndForbidTokens) {
  const auto bias = [](const std::string& id, double by) {
    return Json{{"logit_bias", {{id, by}}}, {"max_tokens", 6}};
  };
  EXPECT_EQ(text(bias("6", 100)), "gggggg");
  const auto likeliest = text({{"max_tokens", 6}, {"temperature", 0}}).substr(0, 1);
  auto forbidden = bias(std::to_string(ids(likeliest)[0]), -100);
  forbidden["temperature"] = 0;
  EXPECT_THAT(text(forbidden), ::testing::Not(HasSubstr(likeliest)));
  // A bias is added to the logit: half of the difference changes nothing, twice the difference does.
  const auto order = candidates("abc", 1);
  const double difference = std::log(order[0].probability / order[1].probability);
  for (const double share : {0.5, 2.0}) {
    auto asked = bias(std::to_string(order[1].id), share * difference);
    asked.update({{"temperature", 0}, {"max_tokens", 1}, {"logprobs", 0}});
    const auto written = answer(asked)["choices"][0]["logprobs"]["token_ids"].get<TokenIds>();
    const auto expected = order[share > 1 ? 1 : 0].id;
    EXPECT_EQ(written, expected == kEndToken ? TokenIds() : TokenIds{expected}) << share;
  }
}

TEST_F(ParametersOfTheApi, AnOutputHasAtLeastAndAtMostSoManyTokens) {
  const auto ended = [&](Json more) {
    Json asked{{"logit_bias", {{"28", 100}}}, {"logprobs", 1}};
    asked.update(more);
    return answer(std::move(asked));
  };
  // The end token is chosen as soon as it may be. It has no text and is not among the log-probabilities, but
  // it is one of the tokens that the model has written.
  for (const int64_t least : {0, 1, 5}) {
    const auto found = ended({{"max_tokens", 8}, {"min_tokens", least}});
    const auto& choice = found["choices"][0];
    EXPECT_EQ(choice["text"].get<std::string>().size(), least);
    EXPECT_EQ(choice["finish_reason"], "stop");
    for (const char* const key :
         {"tokens", "token_logprobs", "top_logprobs", "text_offset", "token_ids", "top"})
      EXPECT_EQ(choice["logprobs"][key].size(), least) << key;
    EXPECT_EQ(found["usage"],
              Json({{"prompt_tokens", 3}, {"completion_tokens", least + 1}, {"total_tokens", 4 + least}}));
  }
  const auto cut = ended({{"max_tokens", 3}, {"min_tokens", 5}});
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(cut["usage"]["completion_tokens"], 3);
  EXPECT_EQ(ended({{"max_tokens", 4096}})["usage"]["completion_tokens"], 1);
  const Json endless = Json::parse(kNoEnd);
  EXPECT_EQ(answer({{"max_tokens", 1}, {"logit_bias", endless}})["usage"]["completion_tokens"], 1);
  EXPECT_EQ(answer({{"max_tokens", nullptr}, {"logit_bias", endless}})["usage"]["completion_tokens"], 16);
}

TEST_F(ParametersOfTheApi, AreRefusedBeyondTheirBoundsAndTakenAtThem) {
  const auto with = [](const std::string& key, const Json& value) {
    Json asked{{"logit_bias", {{"28", 100}}}};  // ends at once
    asked[key] = value;
    return asked;
  };
  const Json many_stops(17, "x"), long_stop(std::string(1001, 'x'));
  const std::vector<std::pair<std::string, std::vector<Json>>> refused = {
      {"top_p", {0, -0.1, 1.01, "1", true}},
      {"typical_p", {0, -0.1, 1.01}},
      {"min_p", {-0.1, 1.01}},
      {"top_k", {-1, 1.5}},
      {"temperature", {-0.1, "1"}},
      {"presence_penalty", {-100.5, 100.5}},
      {"frequency_penalty", {-100.5, 100.5}},
      {"repetition_penalty", {0, -1}},
      {"min_tokens", {-1, 4097}},
      {"max_tokens", {-1, 0, 4097, 1.5}},
      {"n", {0, -1, 257, 1.5}},
      {"best_of", {2}},
      {"priority", {-1'000'001, 1'000'001, 0.5}},
      {"seed", {0.5, "1"}},
      {"logprobs", {-1, 21, true}},
      {"echo", {1, "yes"}},
      {"stream", {1}},
      {"stop", {many_stops, long_stop, "", Json{1}}},
      {"logit_bias", {Json{{"28", 100.5}}, Json{{"28", -100.5}}, Json{{"-1", 1}}, Json{1}}},
      {"regex", {1}},
      {"suffix", {"x"}}};
  for (const auto& [key, values] : refused) {
    for (const auto& value : values) {
      const auto found = complete(with(key, value));
      EXPECT_EQ(found.status, 400) << key << value;
      EXPECT_EQ(found.json()["error"]["param"], key) << found.body;
      EXPECT_EQ(found.json()["error"]["type"], "invalid_request_error");
    }
  }
  const std::vector<std::pair<std::string, std::vector<Json>>> taken = {
      {"top_p", {1e-300, 1}},
      {"typical_p", {1e-300, 1}},
      {"min_p", {0, 1}},
      {"top_k", {0, 1, INT64_MAX}},
      {"temperature", {0, 1e-30, 1e6}},
      {"presence_penalty", {-100, 100}},
      {"frequency_penalty", {-100, 100}},
      {"min_tokens", {0, 4096}},
      {"max_tokens", {1, 4096}},
      {"n", {1, 256}},
      {"best_of", {1}},
      {"priority", {-1'000'000, 1'000'000}},
      {"logprobs", {0, 20}},
      {"stop", {Json(16, "x"), std::string(1000, 'x'), Json::array()}},
      {"logit_bias", {Json{{"28", 100}, {"0", -100}}}},
      {"suffix", {""}},
      {"user", {"somebody"}}};
  for (const auto& [key, values] : taken) {
    for (const auto& value : values) {
      auto asked = with(key, value);
      if (key == "min_tokens") asked["max_tokens"] = 1;
      EXPECT_EQ(complete(asked).status, 200) << key << value;
    }
  }
}

TEST_F(ParametersOfTheApi, OutputsOfPromptsStandInTheOrderOfThePrompts) {
  const Json prompts{"abc", "hgfe"};
  const auto both = answer({{"prompt", prompts}, {"n", 3}});
  ASSERT_EQ(both["choices"].size(), 6u);
  const auto expected = service_->complete(
      "writer", CompletionRequest{.prompts = {"abc", "hgfe"},
                                  .options = {.max_new_tokens = 8, .num_samples = 3, .seed = 4}});
  std::set<Json> texts;
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(both["choices"][i]["index"], i);
    EXPECT_EQ(both["choices"][i]["text"], expected.outputs[i].text);
    texts.insert(both["choices"][i]["text"]);
  }
  EXPECT_GE(texts.size(), 5u);
  // With an echo it is seen which prompt each belongs to.
  const auto echoed = answer({{"prompt", prompts}, {"n", 2}, {"echo", true}, {"max_tokens", 2}});
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_THAT(echoed["choices"][i]["text"].get<std::string>(),
                ::testing::StartsWith(prompts[i / 2].get<std::string>()));
  }
  for (const size_t n_prompts : {1, 2}) {
    const Json asked{{"prompt", Json(n_prompts, "abc")}, {"max_tokens", 1}};
    for (const size_t more : {0, 1}) {
      auto with = asked;
      with["n"] = 256 / n_prompts + more;
      const auto found = complete(with);
      EXPECT_EQ(found.status, more == 0 ? 200 : 400) << found.body;
      if (more == 0) {
        EXPECT_EQ(found.json()["choices"].size(), 256u);
      }
    }
  }
  EXPECT_EQ(complete({{"prompt", Json(256, "a")}, {"max_tokens", 1}}).status, 200);
  EXPECT_EQ(complete({{"prompt", Json(257, "a")}, {"max_tokens", 1}}).status, 400);
}

TEST_F(ParametersOfTheApi, SeedsRepeatOutputsAndAreToldIfTheyAreDrawn) {
  const auto with = [&](const Json& seed) {
    return answer({{"seed", seed}, {"max_tokens", 24}, {"temperature", 1.5}});
  };
  const auto first = with(7);
  EXPECT_EQ(first["zoo"]["seed"], 7);
  EXPECT_EQ(with(7)["choices"], first["choices"]);
  EXPECT_NE(with(8)["choices"], first["choices"]);
  const auto any = with(nullptr), other = with(nullptr);
  EXPECT_NE(any["zoo"]["seed"], other["zoo"]["seed"]);
  EXPECT_EQ(with(any["zoo"]["seed"])["choices"], any["choices"]);
}

}  // namespace
}  // namespace zoo

#include "serving/service.h"

#include <algorithm>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generation/text_scores.h"
#include "serving/service_error.h"
#include "tests/serving/small_runs.h"
#include "tests/support/errors.h"
#include "tests/support/wait.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::SmallRuns;

/// The runs and their service.
class Services : public ::testing::Test {
 protected:
  Services() { runs_.writer(); }

  std::unique_ptr<Service> service(WorkerLimits limits = {}) const {
    return std::make_unique<Service>(
        ServiceOptions{.models = {{.id = "writer", .path = runs_.dir() / "writer"}}, .limits = limits});
  }
  static GenerationConfig sampling(int64_t seed, int64_t n = 1, int64_t length = 20) {
    return {.max_new_tokens = length, .temperature = 0.9, .num_samples = n, .seed = seed};
  }

  SmallRuns runs_;
};

TEST_F(Services, AnswersAreThoseOfAGenerator) {
  const auto run = Run::open(runs_.dir() / "writer");
  const Generator generator(run.model(), run.tokenizer());
  const std::vector<std::string> prompts = {"abc", "d", "hgf edc"};
  const auto expected = generator.generate(prompts, sampling(5, 2));
  const auto answer =
      service()->complete("writer", {.prompts = {prompts.begin(), prompts.end()}, .options = sampling(5, 2)});
  ASSERT_EQ(answer.outputs.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const auto& output = expected[i / 2].outputs[i % 2];
    EXPECT_EQ(answer.outputs[i].text, output.text);
    for (size_t t = 0; t < answer.outputs[i].tokens.size(); ++t) {
      EXPECT_EQ(answer.outputs[i].tokens[t].id, output.ids[t]);
      EXPECT_EQ(answer.outputs[i].tokens[t].logprob, output.logprobs[t]);
    }
  }
}

TEST_F(Services, ADraftProposesTokensAndChangesNoGreedyOutput) {
  const auto path = runs_.dir() / "writer";
  Service drafting({.models = {{.id = "writer", .path = path, .draft = path}}});
  const auto plain = service();
  CompletionRequest request{.prompts = {"abc", "fed"},
                            .options = {.max_new_tokens = 40, .temperature = 0, .ignore_eos = true}};
  const auto expected = plain->complete("writer", request), found = drafting.complete("writer", request);
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(found.outputs[i].text, expected.outputs[i].text);
  // The model agrees with itself, so that a step adds several tokens.
  EXPECT_LT(drafting.models()[0].counts.steps * 2, plain->models()[0].counts.steps);
  EXPECT_EQ(drafting.models()[0].card.bytes, 2 * plain->models()[0].card.bytes);
  request.options.prompt_lookup = 2;
  EXPECT_THAT(message_of<UsageError>([&] { drafting.complete("writer", request); }),
              HasSubstr("prompt_lookup contradicts the draft model"));
  const auto looker = runs_.looker();
  const Service looking({.models = {{.id = "looker", .path = looker}}}),
      both({.models = {{.id = "looker", .path = looker, .draft = path}}});
  EXPECT_EQ(looking.models()[0].card.generation.prompt_lookup, 4);
  EXPECT_EQ(both.models()[0].card.generation.prompt_lookup, 0) << "tokens are proposed in one way";
  const auto other = [&](const std::filesystem::path& model, const std::filesystem::path& draft) {
    return message_of<UsageError>([&] { ServedModel({.id = "other", .path = model, .draft = draft}); });
  };
  EXPECT_THAT(other(path, runs_.caller()), HasSubstr("--draft: this run has another vocabulary"));
  EXPECT_THAT(other(runs_.classifier(), path), HasSubstr("--draft is for a model that writes"));
}

TEST_F(Services, ManyRequestsAtOnceGetWhatEachGetsAlone) {
  const auto one = service();
  const auto request = [](int i) {
    const std::string prompt(static_cast<size_t>(1 + i % 7), static_cast<char>('a' + i % 8));
    GenerationConfig options = sampling(i, 1 + i % 3, 1 + i % 25);
    if (i % 4 == 0) options.temperature = 0;
    if (i % 5 == 0) options.stop = {"a", "bc"};
    return CompletionRequest{.prompts = {prompt}, .options = options};
  };
  constexpr int n = 64;
  std::vector<Completed> alone, together(n);
  for (int i = 0; i < n; ++i) alone.push_back(one->complete("writer", request(i)));
  std::vector<std::thread> clients;
  std::latch start(n);
  for (int i = 0; i < n; ++i) {
    clients.emplace_back([&, i] {
      start.arrive_and_wait();
      together[static_cast<size_t>(i)] = one->complete("writer", request(i));
    });
  }
  for (auto& client : clients) client.join();
  for (size_t i = 0; i < n; ++i) {
    ASSERT_EQ(alone[i].outputs.size(), together[i].outputs.size());
    for (size_t o = 0; o < alone[i].outputs.size(); ++o) {
      const auto &a = alone[i].outputs[o], &b = together[i].outputs[o];
      EXPECT_EQ(a.text, b.text) << i;
      ASSERT_EQ(a.tokens.size(), b.tokens.size()) << i;
      for (size_t t = 0; t < a.tokens.size(); ++t) EXPECT_EQ(a.tokens[t].logprob, b.tokens[t].logprob);
    }
  }
}

TEST_F(Services, TokensHaveTheLikeliestOnesInTheirOrder) {
  auto options = sampling(1);
  options.temperature = 0;
  const auto answer =
      service()->complete("writer", {.prompts = {"abc"}, .options = options, .n_likeliest = 4});
  ASSERT_FALSE(answer.outputs[0].tokens.empty());
  for (const auto& token : answer.outputs[0].tokens) {
    ASSERT_EQ(token.likeliest.size(), 4u);
    for (size_t i = 1; i < 4; ++i) EXPECT_GE(token.likeliest[i - 1].logprob, token.likeliest[i].logprob);
    // Special tokens are never written but may be likely: the token is the first of the others.
    const auto found = std::ranges::find(token.likeliest, token.id, &TokenLogprob::id);
    if (found != token.likeliest.end()) {
      EXPECT_NEAR(found->logprob, *token.logprob, 1e-12);
    }
  }
}

TEST_F(Services, AnEchoScoresThePrompt) {
  const auto run = Run::open(runs_.dir() / "writer");
  const TokenIds ids = run.tokenizer().encode("abcdefgh");
  const auto expected =
      token_logprobs(run.model(), {{.prompt = {ids[0]}, .ids = {ids.begin() + 1, ids.end()}}});
  const auto answer = service()->complete("writer", CompletionRequest{.prompts = {ids},
                                                                      .options = {.max_new_tokens = 0},
                                                                      .n_likeliest = 2,
                                                                      .echo = PromptEcho::text_and_logprobs});
  ASSERT_EQ(answer.echoes.size(), 1u);
  const auto& tokens = answer.echoes[0].tokens;
  ASSERT_EQ(tokens.size(), ids.size());
  EXPECT_FALSE(tokens[0].logprob);
  for (size_t i = 1; i < tokens.size(); ++i) {
    EXPECT_EQ(tokens[i].logprob, expected[0][i - 1]);
    EXPECT_EQ(tokens[i].likeliest.size(), 2u);
  }
  EXPECT_EQ(answer.echoes[0].text, "abcdefgh");
  EXPECT_EQ(answer.outputs[0].text, "");
  EXPECT_EQ(answer.usage.output_tokens, 0);
}

TEST_F(Services, BiasesChangeWhatIsChosen) {
  const auto run = Run::open(runs_.dir() / "writer");
  const int64_t g = run.tokenizer().encode("g")[0];
  CompletionRequest request{.prompts = {run.tokenizer().encode("abc")}, .options = sampling(3, 1, 5)};
  request.options.sequence_biases = {{.tokens = {g}, .bias = 100}};
  EXPECT_EQ(service()->complete("writer", request).outputs[0].text, "ggggg");
  request.options.sequence_biases = {{.tokens = {1000}, .bias = 100}};
  EXPECT_THAT(message_of<UsageError>([&] { service()->complete("writer", request); }),
              HasSubstr("1000 is not a token id"));
}

/// Begins a request that would go on for long.
struct LongRequest {
  std::promise<OutputEnd> end;
  std::promise<void> begun;
  std::once_flag has_begun;
  CompletionListener listener() {
    return {.on_piece =
                [this](const CompletionPiece& piece) {
                  std::call_once(has_begun, [this] { begun.set_value(); });
                  if (piece.end) end.set_value(*piece.end);
                },
            .on_end = [](const CompletionUsage&) {},
            .on_error = [this](const std::exception_ptr& problem) { end.set_exception(problem); }};
  }
  static CompletionRequest request(int64_t n = 1) {
    // An end token has no chance.
    return {.prompts = {TokenIds{0, 1, 2}},
            .options = {.max_new_tokens = 1'000'000'000,
                        .temperature = 0,
                        .num_samples = n,
                        .sequence_biases = {{.tokens = {28}, .bias = -100}}}};
  }
};

std::shared_ptr<ModelWorker> worker_of(Service& service, const std::string& id) {
  std::promise<std::shared_ptr<ModelWorker>> promise;
  service.with_model(
      id, [&](const std::shared_ptr<ModelWorker>& worker) { promise.set_value(worker); },
      [&](const std::exception_ptr& problem) { promise.set_exception(problem); });
  return promise.get_future().get();
}

TEST_F(Services, ARequestWhoseRulesFailEndsAlone) {
  const auto one = service();
  const CompletionRequest good{.prompts = {"abc"}, .options = sampling(3, 2)};
  const auto alone = one->complete("writer", good);
  LongRequest beside;
  const auto worker = worker_of(*one, "writer");
  const auto cancellation = worker->complete(LongRequest::request(), beside.listener());
  beside.begun.get_future().wait();
  auto overflows = sampling(1, 2);
  overflows.repetition_penalty = 1e-300;
  EXPECT_THROW(one->complete("writer", {.prompts = {"abcabc"}, .options = overflows}), Error);
  const auto together = one->complete("writer", good);
  for (size_t i = 0; i < alone.outputs.size(); ++i)
    EXPECT_EQ(together.outputs[i].text, alone.outputs[i].text);
  EXPECT_EQ(worker->counts().failed, 1);
  EXPECT_EQ(worker->counts().waiting_or_running, 1) << "the long request goes on";
  cancellation->request();
  ASSERT_TRUE(testing::comes_true([&] { return worker->is_idle(); }));
}

TEST_F(Services, RefusesWhatIsTooMuchAndGoesOnAfterACancellation) {
  LongRequest first;
  const auto one = service({.most_outputs = 3});
  const auto worker = worker_of(*one, "writer");
  const auto cancellation = worker->complete(LongRequest::request(3), first.listener());
  first.begun.get_future().wait();
  const CompletionRequest small{.prompts = {"abc"}, .options = sampling(1)};
  try {
    one->complete("writer", small);
    ADD_FAILURE() << "not refused";
  } catch (const ServiceError& error) {
    EXPECT_EQ(error.problem(), ServiceProblem::busy);
  }
  cancellation->request();
  ASSERT_TRUE(testing::comes_true([&] { return worker->is_idle(); }));
  EXPECT_FALSE(one->complete("writer", small).outputs.empty());
  EXPECT_EQ(worker->counts().cancelled, 1);
  EXPECT_EQ(worker->counts().refused, 1);
}

TEST_F(Services, EndsARequestThatTakesTooLong) {
  LongRequest request;
  const auto one = service({.most_time = std::chrono::seconds(0)});
  const auto worker = worker_of(*one, "writer");
  worker->complete(LongRequest::request(), request.listener());
  EXPECT_EQ(request.end.get_future().get(), OutputEnd::time);
}

TEST_F(Services, WhatIsUnderWayHearsOfTheEnd) {
  LongRequest request;
  auto one = service();
  worker_of(*one, "writer")->complete(LongRequest::request(), request.listener());
  request.begun.get_future().wait();
  one.reset();
  EXPECT_THAT(message_of<ServiceError>([&] { request.end.get_future().get(); }), HasSubstr("shutting down"));
}

TEST_F(Services, OtherWorkIsDoneBetweenSteps) {
  LongRequest request;  // outlives the service, which calls its listener
  const auto one = service();
  const auto worker = worker_of(*one, "writer");
  const auto cancellation = worker->complete(LongRequest::request(), request.listener());
  request.begun.get_future().wait();
  std::promise<void> done;
  int n_parts = 0;
  worker->post([&](const std::exception_ptr&) {
    if (++n_parts < 3) return JobState::has_more;
    done.set_value();
    return JobState::is_done;
  });
  done.get_future().wait();
  EXPECT_EQ(n_parts, 3);
  std::promise<std::string> problem;
  worker->post([&](const std::exception_ptr& error) {
    if (!error) throw DataError("wrong");
    problem.set_value(message_of<DataError>([&] { std::rethrow_exception(error); }));
    return JobState::is_done;
  });
  EXPECT_EQ(problem.get_future().get(), "wrong");
  cancellation->request();
}

TEST_F(Services, ModelsShareTheThreadThatComputes) {
  runs_.writer("other");
  LongRequest first, second;  // they outlive the service, which calls their listeners
  Service both({.models = {{.id = "writer", .path = runs_.dir() / "writer"},
                           {.id = "other", .path = runs_.dir() / "other"}}});
  const auto writer = worker_of(both, "writer"), other = worker_of(both, "other");
  const auto cancel_first = writer->complete(LongRequest::request(), first.listener());
  const auto cancel_second = other->complete(LongRequest::request(), second.listener());
  first.begun.get_future().wait();
  second.begun.get_future().wait();  // neither waits for the end of the other
  const CompletionRequest request{.prompts = {"abc"}, .options = sampling(2)};
  const auto text = both.complete("writer", request).outputs[0].text;
  EXPECT_EQ(both.complete("other", request).outputs[0].text, text);  // equal weights
  std::promise<std::thread::id> of_writer, of_other;
  const auto tell = [](std::promise<std::thread::id>& thread) {
    return [&thread](const std::exception_ptr&) {
      thread.set_value(std::this_thread::get_id());
      return JobState::is_done;
    };
  };
  writer->post(tell(of_writer));
  other->post(tell(of_other));
  EXPECT_EQ(of_writer.get_future().get(), of_other.get_future().get());
  cancel_first->request();
  cancel_second->request();
}

TEST_F(Services, LoadsModelsOnDemandWithinTheMemoryLimit) {
  runs_.writer("other");
  const auto bytes = service()->card("writer").bytes;
  Service both({.models = {{.id = "writer", .path = runs_.dir() / "writer"},
                           {.id = "other", .path = runs_.dir() / "other"}},
                .memory_limit = bytes * 3 / 2,
                .patience = std::chrono::milliseconds(500)});
  const auto loaded = [&] {
    std::vector<bool> result;
    for (const auto& model : both.models()) result.push_back(model.is_loaded);
    return result;
  };
  EXPECT_THAT(loaded(), ElementsAre(false, true));
  const CompletionRequest request{.prompts = {"abc"}, .options = sampling(2)};
  const auto first = both.complete("writer", request).outputs[0].text;
  EXPECT_THAT(loaded(), ElementsAre(true, false));
  EXPECT_EQ(both.complete("other", request).outputs[0].text, first);  // equal weights
  EXPECT_THAT(loaded(), ElementsAre(false, true));
  const auto held = worker_of(both, "other");
  EXPECT_THAT(message_of<ServiceError>([&] { both.complete("writer", request); }),
              HasSubstr("raise the memory limit"));
}

TEST_F(Services, TheModelThatWaitedLongestMakesRoom) {
  const auto bytes = service()->card("writer").bytes;
  std::vector<ModelSource> sources;
  for (const char* const id : {"a", "b", "c"}) sources.push_back({.id = id, .path = runs_.dir() / "writer"});
  Service three({.models = sources, .memory_limit = bytes * 5 / 2});
  const CompletionRequest request{.prompts = {"abc"}, .options = sampling(2)};
  const auto loaded_after = [&](const char* id) {
    three.complete(id, request);
    std::string loaded;
    for (const auto& model : three.models()) loaded += model.is_loaded ? model.card.id : "";
    return loaded;
  };
  EXPECT_EQ(loaded_after("a"), "ac") << "b and c were opened at the beginning";
  EXPECT_EQ(loaded_after("c"), "ac");
  EXPECT_EQ(loaded_after("b"), "bc");
  EXPECT_EQ(loaded_after("a"), "ab");
}

TEST_F(Services, SaysWhichModelsThereAreAndWhatTheyCan) {
  runs_.translator();
  runs_.filler();
  runs_.classifier();
  const auto source = [&](const char* id) { return ModelSource{.id = id, .path = runs_.dir() / id}; };
  Service all({.models = {source("writer"), source("translator"), source("filler"), source("classifier")}});
  EXPECT_THAT(all.card("writer").can, ElementsAre(Ability::completions, Ability::chat, Ability::embeddings,
                                                  Ability::attention, Ability::causes));
  EXPECT_THAT(all.card("translator").can,
              ElementsAre(Ability::completions, Ability::embeddings, Ability::translate, Ability::attention,
                          Ability::causes));
  EXPECT_THAT(all.card("filler").can,
              ElementsAre(Ability::embeddings, Ability::fill, Ability::attention, Ability::causes));
  EXPECT_THAT(all.card("classifier").can,
              ElementsAre(Ability::embeddings, Ability::predict_text, Ability::attention, Ability::causes));
  const CompletionRequest request{.prompts = {"abc"}};
  EXPECT_EQ(message_of<ServiceError>([&] { all.complete("writers", request); }),
            "there is no model 'writers': there is writer, translator, filler, classifier");
  EXPECT_THAT(message_of<ServiceError>([&] { all.complete("filler", request); }),
              HasSubstr("cannot do completions: it can do embeddings, fill, attention"));
  EXPECT_THAT(message_of<UsageError>([&] { Service({.models = {source("writer"), source("writer")}}); }),
              HasSubstr("two models are called 'writer'"));
}

}  // namespace
}  // namespace zoo

// Requests that wait, fail, are cancelled, and the places that they leave to others.

#include <atomic>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/model_worker.h"
#include "tests/serving/api_server.h"
#include "tests/support/wait.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using Json = nlohmann::json;
using testing::ApiServer;
using testing::events;
using testing::HttpClient;
using testing::SmallRuns;

class WaitingRequests : public ::testing::Test {
 protected:
  WaitingRequests() { runs_.writer(); }

  void serve(WorkerLimits limits) {
    service_ = std::make_unique<Service>(
        ServiceOptions{.models = {{.id = "writer", .path = runs_.dir() / "writer"}}, .limits = limits});
    server_ = std::make_unique<ApiServer>(*service_);
  }
  WorkerCounts counts() const { return service_->models()[0].counts; }
  void wait_until_idle() const {
    ASSERT_TRUE(testing::comes_true([&] { return counts().waiting_or_running == 0; }))
        << "places were not given back";
  }
  static Json asked(Json more) {
    Json body{{"model", "writer"}, {"prompt", "abc"}, {"max_tokens", 4}, {"seed", 1}};
    body.update(more);
    return body;
  }
  testing::Answer complete(Json more) const {
    return HttpClient(server_->port()).post("/v1/completions", asked(std::move(more)));
  }
  /// A request whose logits become infinite: every token of the prompt that has a positive one.
  static Json overflowing() {
    return {{"prompt", "abcdefgh0123456789"}, {"repetition_penalty", 1e-300}, {"max_tokens", 40}};
  }
  /// Begins an output that goes on for long.
  void begin_long_request(HttpClient& client, int64_t n = 1) const {
    client.begin_post(
        "/v1/completions",
        asked({{"stream", true}, {"n", n}, {"max_tokens", 4096}, {"logit_bias", {{"28", -100}}}}).dump());
    EXPECT_NE(client.read_until("data: "), "");
  }

  std::shared_ptr<ModelWorker> opened() const {
    std::promise<std::shared_ptr<ModelWorker>> opened;
    service_->with_model(
        "writer", [&](const std::shared_ptr<ModelWorker>& found) { opened.set_value(found); },
        [&](const std::exception_ptr& problem) { opened.set_exception(problem); });
    return opened.get_future().get();
  }

  SmallRuns runs_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<ApiServer> server_;
};

TEST_F(WaitingRequests, ThoseOfALowerPriorityNumberComeFirst) {
  serve({.most_rows = 1});
  auto first = std::make_unique<HttpClient>(server_->port());
  begin_long_request(*first);
  const std::vector<std::pair<std::string, int64_t>> waiting = {
      {"a", 5}, {"ab", 0}, {"abc", -3}, {"abcd", 0}, {"abcde", 5}, {"abcdef", -1'000'000}};
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (const auto& [prompt, priority] : waiting) {
    // Without an end token, so that no two end in one step.
    Json body = asked({{"prompt", prompt}, {"priority", priority}, {"logit_bias", {{"28", -100}}}});
    if (priority == 0) body.erase("priority");
    clients.push_back(std::make_unique<HttpClient>(server_->port()));
    clients.back()->begin_post("/v1/completions", body.dump());
    ASSERT_TRUE(testing::comes_true([&] { return counts().requests > std::ssize(clients); }));
  }
  first->close();
  for (const auto& client : clients) EXPECT_EQ(client->read_answer().status, 200);
  // The log has them in the order in which they were answered. A prompt's length tells which it is.
  ASSERT_TRUE(testing::comes_true([&] { return server_->log().size() >= 7; }));
  std::vector<int64_t> order;
  for (const auto& record : server_->log()) {
    if (record.status == 200 && record.note.tokens_out > 0) order.push_back(record.note.tokens_in);
  }
  EXPECT_THAT(order, ElementsAre(6, 3, 2, 4, 1, 5));
}

TEST_F(WaitingRequests, AFailedRequestGivesItsPlacesBack) {
  serve({.most_outputs = 3});
  const std::vector<Json> failing = {
      {{"logit_bias", {{"100000", 1}}}},                             // no such token
      {{"regex", "[x]{3}"}},                                         // the vocabulary cannot write it
      {{"prompt", {std::string(200, 'a'), std::string(300, 'a')}}},  // too long
      {{"prompt", {1, 2, 1000}}},
      overflowing()};
  for (const auto& more : failing) {
    auto body = more;
    body["n"] = more.contains("prompt") ? 1 : 3;
    EXPECT_GE(complete(body).status, 400) << more;
    wait_until_idle();
    EXPECT_EQ(complete({{"n", 3}}).status, 200) << more;
    wait_until_idle();
  }
  EXPECT_EQ(complete({{"n", 4}}).status, 400);
  EXPECT_EQ(complete({{"n", 3}}).status, 200);
}

TEST_F(WaitingRequests, ThoseThatGoAwayGiveTheirPlacesBack) {
  serve({.most_outputs = 3});
  for (int round = 0; round < 3; ++round) {
    HttpClient client(server_->port());
    begin_long_request(client, 3);
    const auto refused = complete(Json::object());
    EXPECT_EQ(refused.status, 429);
    EXPECT_NE(refused.head.find("Retry-After: 1\r\n"), std::string::npos);
    EXPECT_EQ(refused.json()["error"]["type"], "rate_limit_error");
    client.close();
    wait_until_idle();
  }
  EXPECT_EQ(complete({{"n", 3}}).status, 200);
  EXPECT_EQ(counts().cancelled, 3);
  EXPECT_EQ(counts().refused, 3);
}

TEST_F(WaitingRequests, TheModelGoesOnAfterAStepThatFailed) {
  serve({});
  const Json usual{{"n", 2}, {"max_tokens", 12}, {"logprobs", 2}, {"prompt", std::string(60, 'a') + "bc"}};
  const auto before = complete(usual).json();
  for (int round = 0; round < 2; ++round) {
    const auto failed = complete(overflowing());
    EXPECT_GE(failed.status, 400);
    EXPECT_TRUE(failed.json()["error"]["message"].is_string());
    // The status of a stream was sent before it failed.
    HttpClient client(server_->port());
    auto streamed = asked(overflowing());
    streamed["stream"] = true;
    client.begin_post("/v1/completions", streamed.dump());
    const auto stream = client.read_answer();
    EXPECT_NE(stream.body.find("\"error\""), std::string::npos) << stream.body;
    wait_until_idle();
    const auto after = complete(usual).json();
    EXPECT_EQ(after["choices"], before["choices"]);
    EXPECT_EQ(after["usage"], before["usage"]);
  }
  EXPECT_EQ(
      HttpClient(server_->port()).post("/v1/embeddings", {{"model", "writer"}, {"input", "abc"}}).status,
      200);
}

TEST_F(WaitingRequests, ACancelledJobIsNotBegun) {
  serve({.most_jobs = 3});
  const auto worker = opened();
  std::promise<void> begun, go_on, done;
  const auto wait = go_on.get_future().share();
  worker->post([&, n = 0](const std::exception_ptr&) mutable {
    if (n++ == 0) {
      begun.set_value();
      wait.wait();
    }
    return JobState::is_done;
  });
  begun.get_future().wait();
  std::atomic<int> n_calls = 0;
  const auto count = [&](const std::exception_ptr&) {
    ++n_calls;
    return JobState::is_done;
  };
  const auto cancelled = worker->post(count);
  worker->post(count);
  worker->post([&](const std::exception_ptr&) {
    done.set_value();
    return JobState::is_done;
  });
  // No more may wait.
  EXPECT_EQ(
      HttpClient(server_->port()).post("/v1/embeddings", {{"model", "writer"}, {"input", "abc"}}).status,
      429);
  cancelled->request();
  go_on.set_value();
  done.get_future().wait();
  EXPECT_EQ(n_calls, 1);
  EXPECT_EQ(
      HttpClient(server_->port()).post("/v1/embeddings", {{"model", "writer"}, {"input", "abc"}}).status,
      200);
}

TEST_F(WaitingRequests, ClientsHaveTurnsAmongJobs) {
  serve({});
  const auto worker = opened();
  std::promise<void> begun, go_on;
  const auto wait = go_on.get_future().share();
  worker->post(
      [&](const std::exception_ptr&) {
        begun.set_value();
        wait.wait();
        return JobState::is_done;
      },
      "a");
  begun.get_future().wait();
  std::vector<std::string> order;
  std::promise<void> done;
  for (const std::string client : {"a", "a", "b", "b", "c"}) {
    const auto note = [&, client](const std::exception_ptr&) {
      order.push_back(client);
      if (order.size() == 5) done.set_value();
      return JobState::is_done;
    };
    worker->post(note, client);
  }
  go_on.set_value();
  done.get_future().wait();
  EXPECT_THAT(order, ElementsAre("b", "a", "b", "a", "c"));
}

TEST_F(WaitingRequests, OneWithManyOutputsLeavesPlacesForOthers) {
  serve({.most_rows = 8});
  HttpClient large(server_->port());
  begin_long_request(large, 20);
  HttpClient second(server_->port());
  begin_long_request(second, 20);
  // Both are of one client, which leaves a quarter of the places to others: to the program itself here.
  const auto answer =
      service_->complete("writer", {.prompts = {"abc"}, .options = {.max_new_tokens = 3, .seed = 1}});
  EXPECT_EQ(answer.outputs.size(), 1u);
  EXPECT_EQ(counts().waiting_or_running, 40);
  large.close();
  EXPECT_EQ(complete({{"n", 3}}).status, 200);
}

TEST_F(WaitingRequests, AClientLeavesRoomInTheQueue) {
  serve({.most_rows = 4, .most_outputs = 8});
  HttpClient first(server_->port()), second(server_->port());
  begin_long_request(first, 4);
  begin_long_request(second, 1);
  EXPECT_EQ(complete({{"n", 2}}).status, 429);
  EXPECT_EQ(service_
                ->complete("writer", {.prompts = {"abc"},
                                      .options = {.max_new_tokens = 3, .num_samples = 2, .seed = 1},
                                      .priority = -1})
                .outputs.size(),
            2u);
}

// Others get their texts meanwhile, and the model goes on.
TEST_F(WaitingRequests, WhatOutgrowsItsLimitsEndsAlone) {
  serve({});
  const Json usual{{"n", 2}, {"max_tokens", 12}, {"regex", "(ab|cd|e)*"}};
  const auto before = complete(usual).json()["choices"];
  HttpClient other(server_->port());
  begin_long_request(other);
  std::string nine, values = "0";
  for (int i = 0; i < 9; ++i) nine += "([a-h ]?){9999}";
  for (int i = 1; i < 1'000'000; ++i) values += "," + std::to_string(i);
  for (const std::string& regex :
       {nine, std::string(100'000, 'a'), std::string("((((){9999}){9999}){9999}){9999}")}) {
    const auto refused = complete({{"regex", regex}});
    EXPECT_EQ(refused.status, 400);
    EXPECT_NE(refused.error().find("regex: the expression"), std::string::npos) << refused.error();
  }
  HttpClient client(server_->port());
  client.begin_post("/v1/completions",
                    R"({"model": "writer", "prompt": "a", "json_schema": {"enum": [)" + values + "]}}");
  const auto refused = client.read_answer();
  EXPECT_EQ(refused.status, 400);
  EXPECT_NE(refused.error().find("json_schema: the schema has more than"), std::string::npos)
      << refused.error();
  EXPECT_NE(other.read_until("data: "), "");
  EXPECT_EQ(complete(usual).json()["choices"], before);
}

TEST_F(WaitingRequests, AreAnsweredInAnyNumberOfPlaces) {
  std::vector<Json> answers;
  const Json body{{"n", 5}, {"prompt", {"abc", "de", "fgh"}}, {"logprobs", 1}, {"temperature", 1.2}};
  for (const int64_t rows : {1, 2, 64}) {
    serve({.most_rows = rows});
    answers.push_back(complete(body).json()["choices"]);
    EXPECT_EQ(answers.back().size(), 15u);
    EXPECT_EQ(answers.back(), answers.front()) << rows;
    server_.reset();
    service_.reset();
  }
}

TEST_F(WaitingRequests, CountsAreTold) {
  serve({});
  complete({{"n", 2}, {"max_tokens", 3}, {"logit_bias", {{"28", -100}}}});
  HttpClient(server_->port()).post("/v1/embeddings", {{"model", "writer"}, {"input", "abc"}});
  wait_until_idle();
  EXPECT_EQ(counts().requests, 2);
  EXPECT_EQ(counts().prompt_tokens, 3);
  EXPECT_EQ(counts().output_tokens, 6);
  const auto metrics = HttpClient(server_->port()).get("/metrics").body;
  for (const std::string line :
       {"requests_total{model=\"writer\"} 2", "prompt_tokens_total{model=\"writer\"} 3",
        "output_tokens_total{model=\"writer\"} 6", "outputs_under_way{model=\"writer\"} 0"})
    EXPECT_NE(metrics.find("zoo_model_" + line + "\n"), std::string::npos) << line;
}

}  // namespace
}  // namespace zoo

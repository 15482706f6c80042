// /v1/responses: what is answered, streamed, kept and forgotten.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/api/response_store.h"
#include "tests/serving/api_server.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Json = nlohmann::json;
using testing::HttpClient;

TEST(ResponseStore, IsBoundedInNumberBytesAndAge) {
  ApiLimits limits;
  limits.most_responses = 2;
  limits.response_bytes = 10;
  ResponseStore store(limits);
  store.put("a", "me", {.document = "1", .messages = "1"});
  EXPECT_TRUE(store.find("a", "me"));
  EXPECT_FALSE(store.find("a", "you"));
  EXPECT_FALSE(store.erase("a", "you"));
  store.put("b", "me", {.document = "1", .messages = "1"});
  store.put("c", "me", {.document = "1", .messages = "1"});
  EXPECT_FALSE(store.find("a", "me"));
  store.put("d", "me", {.document = "12345", .messages = "1234"});
  EXPECT_FALSE(store.find("c", "me"));
  EXPECT_EQ(store.find("d", "me")->messages, "1234");
  EXPECT_TRUE(store.erase("d", "me"));
  EXPECT_FALSE(store.find("d", "me"));
  limits.response_age = std::chrono::milliseconds(0);
  ResponseStore forgetful(limits);
  forgetful.put("a", "me", {.document = "1", .messages = "1"});
  EXPECT_FALSE(forgetful.find("a", "me"));
}

class Responses : public testing::ApiTest {
 protected:
  static Json asked(Json more) {
    Json body{{"model", "writer"}, {"input", "abc"}, {"max_output_tokens", 8}, {"seed", 4}};
    if (!more.is_null()) body.update(more);
    return body;
  }
  testing::Answer respond(Json more) const {
    return HttpClient(server_.port()).post("/v1/responses", asked(std::move(more)));
  }
  Json answer(Json more) const {
    const auto answer = respond(std::move(more));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
};

TEST_F(Responses, SayWhatChatSays) {
  const auto response = answer({{"instructions", "gh"}});
  const Json messages{{{"role", "system"}, {"content", "gh"}}, {{"role", "user"}, {"content", "abc"}}};
  const Json chat{{"model", "writer"}, {"messages", messages}, {"max_tokens", 8}, {"seed", 4}};
  const auto expected = HttpClient(server_.port()).post("/v1/chat/completions", chat).json();
  ASSERT_THAT(response["output"], SizeIs(1));
  EXPECT_EQ(response["output"][0]["content"][0]["text"], expected["choices"][0]["message"]["content"]);
  EXPECT_EQ(response["usage"]["input_tokens"], expected["usage"]["prompt_tokens"]);
}

TEST_F(Responses, SayThatTheyAreCut) {
  const auto cut = answer({{"max_output_tokens", 3}});
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
}

TEST_F(Responses, SayThatTheirTimeIsOver) {
  Service hasty({.models = {{.id = "writer", .path = runs_->dir() / "writer"}},
                 .limits = {.most_time = std::chrono::seconds(0)}});
  const testing::ApiServer server(hasty);
  const auto cut = HttpClient(server.port()).post("/v1/responses", asked({})).json();
  EXPECT_EQ(cut["status"], "incomplete");
  EXPECT_EQ(cut["incomplete_details"]["reason"], "max_output_tokens");
}

// One token comes from the last position.
TEST_F(Responses, FollowAnInputThatFillsTheModel) {
  const auto full = answer({{"input", std::string(254, 'a')}, {"max_output_tokens", nullptr}});
  EXPECT_EQ(full["usage"]["input_tokens"], 256);
  EXPECT_EQ(full["usage"]["output_tokens"], 1);
  EXPECT_EQ(respond({{"input", std::string(255, 'a')}}).status, 400);
}

TEST_F(Responses, GoOnFromEarlierOnes) {
  const auto first = answer({});
  const auto text = first["output"][0]["content"][0]["text"];
  const auto second = answer({{"previous_response_id", first["id"]}, {"input", "de"}});
  const Json turns{{{"role", "user"}, {"content", "abc"}},
                   {{"role", "assistant"}, {"content", text}},
                   {{"role", "user"}, {"content", "de"}}};
  EXPECT_EQ(second["output"][0]["content"], answer({{"input", turns}})["output"][0]["content"]);
  const auto lost = answer({{"store", false}});
  EXPECT_EQ(respond({{"previous_response_id", lost["id"]}}).status, 404);
}

TEST_F(Responses, AreReadAndForgottenByTheirOwner) {
  const auto made = answer({});
  const auto path = "/v1/responses/" + made["id"].get<std::string>();
  HttpClient client(server_.port());
  EXPECT_EQ(client.get(path).json(), made);
  EXPECT_EQ(client.get(path, "Authorization: Bearer another\r\n").status, 404);
  EXPECT_EQ(client.get("/v1/responses/resp_none").status, 404);
  client.send("DELETE " + path + " HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer another\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 404);
  client.send("DELETE " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.read_answer().json()["deleted"], true);
  EXPECT_EQ(client.get(path).status, 404);
}

TEST_F(Responses, RefuseWhatIsNotHere) {
  const auto problem = [&](Json more) {
    const auto answer = respond(std::move(more));
    EXPECT_EQ(answer.status, 400) << answer.body;
    return answer.json()["error"]["message"].get<std::string>();
  };
  EXPECT_THAT(problem({{"background", true}}), HasSubstr("must be false"));
  EXPECT_THAT(problem({{"conversation", "c"}}), HasSubstr("previous_response_id"));
  EXPECT_THAT(problem({{"truncation", "auto"}}), HasSubstr("must be disabled"));
  EXPECT_THAT(problem({{"n", 2}}), HasSubstr("one output"));
  EXPECT_THAT(problem({{"input", Json::array()}}), HasSubstr("at least one item"));
  EXPECT_THAT(
      problem(
          {{"input", Json::array({{{"type", "function_call_output"}, {"call_id", "x"}, {"output", "1"}}})}}),
      HasSubstr("of no call before it"));
}

}  // namespace
}  // namespace zoo

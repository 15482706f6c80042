// /v1/responses: what is answered, streamed, kept and forgotten.

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
    body.update(more);
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

}  // namespace
}  // namespace zoo

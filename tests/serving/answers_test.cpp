// What answers hold: texts that were held back, roles and usage of streams, parameters of other routes.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/serving/api_server.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
using testing::events;
using testing::HttpClient;

class AnswersOfTheApi : public testing::ApiTest {};

TEST_F(AnswersOfTheApi, TextThatIsHeldBackComesAtTheEnd) {
  const Json asked{{"max_tokens", 12}, {"temperature", 0}, {"logit_bias", Json::parse(kNoEnd)}};
  const auto whole = text(asked);
  ASSERT_EQ(whole.size(), 12u);
  auto with = asked;
  with["stop"] = {whole.substr(9) + "Q", "Q"};  // begins, but does not come
  EXPECT_EQ(text(with), whole);
  with["stream"] = true;
  const auto list = events(complete(with).body);
  std::string joined;
  for (size_t i = 0; i + 1 < list.size(); ++i) joined += list[i]["choices"][0]["text"];
  EXPECT_EQ(joined, whole);
  const auto& last = list[list.size() - 2]["choices"][0];
  EXPECT_EQ(last["finish_reason"], "length");
  EXPECT_EQ(last["text"], whole.substr(9));
  // Of two stop texts, the one that is complete first ends the output.
  with["stream"] = false;
  with["stop"] = {whole.substr(5, 4), whole.substr(4, 2)};
  const auto cut = text(with);
  const auto at = std::min(whole.find(whole.substr(5, 4)) + 4, whole.find(whole.substr(4, 2)) + 2);
  EXPECT_LT(cut.size(), at);
  EXPECT_THAT(whole, ::testing::StartsWith(cut));
  EXPECT_THAT(cut, ::testing::Not(HasSubstr(whole.substr(4, 2))));
}

TEST_F(AnswersOfTheApi, OfAConversationFollowItsParameters) {
  HttpClient client(server_.port());
  const auto chat = [&](Json more) {
    Json body{{"model", "writer"},
              {"messages", {{{"role", "user"}, {"content", "abc"}}}},
              {"max_tokens", 10},
              {"seed", 3}};
    body.update(more);
    return client.post("/v1/chat/completions", body);
  };
  const auto content = [&](Json more) {
    return chat(std::move(more)).json()["choices"][0]["message"]["content"].get<std::string>();
  };
  EXPECT_EQ(content({{"logit_bias", {{"6", 100}}}}), "gggggggggg");
  EXPECT_EQ(content({{"logit_bias", {{"6", 100}}}, {"max_completion_tokens", 4}}), "gggg");
  EXPECT_EQ(content({{"top_k", 1}}), content({{"temperature", 0}}));
  EXPECT_EQ(content({{"logit_bias", {{"6", 50}}}, {"stop", "gg"}}), "");
  const auto several = chat({{"n", 3}, {"logit_bias", {{"28", 100}}}}).json();
  ASSERT_EQ(several["choices"].size(), 3u);
  EXPECT_EQ(several["usage"], Json({{"prompt_tokens", 5}, {"completion_tokens", 3}, {"total_tokens", 8}}));
  for (const char* const key : {"top_p", "typical_p", "repetition_penalty", "max_tokens"})
    EXPECT_EQ(chat({{key, 0}}).json()["error"]["param"], key);
  EXPECT_EQ(chat({{"top_logprobs", 3}}).json()["error"]["param"], "top_logprobs");
  EXPECT_EQ(chat({{"logprobs", 3}}).json()["error"]["param"], "logprobs");
}

TEST_F(AnswersOfTheApi, InStreamsSayTheirRoleOnceAndTheirUsageAtTheEnd) {
  HttpClient client(server_.port());
  Json body{{"model", "writer"}, {"messages", {{{"role", "user"}, {"content", "abc"}}}},
            {"max_tokens", 6},   {"n", 2},
            {"seed", 3},         {"logit_bias", Json::parse(kNoEnd)},
            {"stream", true},    {"stream_options", {{"include_usage", true}}}};
  const auto list = events(client.post("/v1/chat/completions", body).body);
  ASSERT_EQ(list.size(), 14u);  // six pieces of two answers, the usage, the end
  std::vector<std::vector<Json>> choices(2);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(list[i]["id"], list[0]["id"]);
    EXPECT_EQ(list[i]["created"], list[0]["created"]);
    EXPECT_EQ(list[i]["model"], "writer");
    EXPECT_EQ(list[i]["object"], "chat.completion.chunk");
    EXPECT_EQ(list[i].contains("zoo"), i == 0);
    EXPECT_TRUE(list[i]["usage"].is_null());
    ASSERT_EQ(list[i]["choices"].size(), 1u);
    choices.at(list[i]["choices"][0]["index"]).push_back(list[i]["choices"][0]);
  }
  for (const auto& pieces : choices) {
    ASSERT_EQ(pieces.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(pieces[i]["delta"].value("role", ""), i == 0 ? "assistant" : "") << i;
      EXPECT_EQ(pieces[i]["finish_reason"], i == 5 ? Json("length") : Json(nullptr)) << i;
      EXPECT_EQ(pieces[i]["delta"]["content"].get<std::string>().size(), 1u);
    }
  }
  EXPECT_TRUE(list[12]["choices"].empty());
  EXPECT_EQ(list[12]["usage"], Json({{"prompt_tokens", 5}, {"completion_tokens", 12}, {"total_tokens", 17}}));
  EXPECT_EQ(list[13], "[DONE]");
  body.erase("stream_options");
  const auto plain = events(client.post("/v1/chat/completions", body).body);
  ASSERT_EQ(plain.size(), 13u);
  for (size_t i = 0; i < 12; ++i) EXPECT_FALSE(plain[i].contains("usage"));
  EXPECT_EQ(
      HttpClient(server_.port())
          .post("/v1/chat/completions",
                {{"model", "writer"}, {"messages", body["messages"]}, {"stream_options", {{"usage", true}}}})
          .json()["error"]["param"],
      "stream_options.usage");
}

TEST_F(AnswersOfTheApi, OfOtherRoutesFollowTheirParameters) {
  HttpClient client(server_.port());
  const auto embedding = [&](Json more) {
    Json body{{"model", "writer"}, {"input", "abc"}};
    body.update(more);
    return client.post("/v1/embeddings", body).json();
  };
  const auto norm = [](const Json& answer) {
    double sum = 0;
    for (const auto& value : answer["data"][0]["embedding"]) sum += std::pow(value.get<double>(), 2);
    return std::sqrt(sum);
  };
  EXPECT_NEAR(norm(embedding(Json::object())), 1, 1e-5);
  EXPECT_GT(std::abs(norm(embedding({{"normalize", false}})) - 1), 1e-3);
  EXPECT_EQ(embedding({{"dimensions", 24}})["data"], embedding(Json::object())["data"]);
  EXPECT_EQ(embedding({{"input", {"abc", "de"}}})["usage"],
            Json({{"prompt_tokens", 5}, {"total_tokens", 5}}));
  EXPECT_EQ(embedding({{"encoding_format", "hex"}})["error"]["param"], "encoding_format");
  const auto labels = [&](Json top) {
    return client.post("/predict", {{"model", "classifier"}, {"texts", {"abc"}}, {"top", std::move(top)}})
        .json();
  };
  const auto both = labels(nullptr)["predictions"][0]["labels"], one = labels(1)["predictions"][0]["labels"];
  ASSERT_EQ(both.size(), 2u);
  EXPECT_NEAR(both[0]["probability"].get<double>() + both[1]["probability"].get<double>(), 1, 1e-5);
  EXPECT_GE(both[0]["probability"].get<double>(), both[1]["probability"].get<double>());
  EXPECT_EQ(one, Json::array({both[0]}));
  EXPECT_EQ(labels(0)["error"]["param"], "top");
  const auto masks =
      client.post("/fill", {{"model", "filler"}, {"text", "a<mask>c<mask>"}, {"top", 3}}).json()["masks"];
  ASSERT_EQ(masks.size(), 2u);
  for (const auto& mask : masks) {
    ASSERT_EQ(mask["candidates"].size(), 3u);
    for (size_t i = 1; i < 3; ++i)
      EXPECT_GE(mask["candidates"][i - 1]["probability"].get<double>(),
                mask["candidates"][i]["probability"].get<double>());
  }
  const auto translated = [&](Json more) {
    Json body{{"model", "translator"}, {"texts", {"abcd"}}};
    body.update(more);
    return client.post("/translate", body).json();
  };
  const auto longest = translated({{"beam", 1}, {"max_tokens", 1}});
  EXPECT_LE(longest["translations"][0]["text"].get<std::string>().size(), 1u);
  const auto usage = longest["usage"];
  EXPECT_EQ(usage["completion_tokens"], 1);
  EXPECT_EQ(usage["total_tokens"], usage["prompt_tokens"].get<int>() + 1);
  // More beams find an output that is at least as likely.
  const auto score = [&](int beam) {
    return translated({{"beam", beam}, {"max_tokens", 2}})["translations"][0]["score"].get<double>();
  };
  EXPECT_GE(score(16), score(1) - 1e-6);
  EXPECT_EQ(translated({{"beam", 33}})["error"]["param"], "beam");
}

}  // namespace
}  // namespace zoo

// The API over real sockets.

#include "serving/api/api.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serving/api/token_json.h"
#include "tests/serving/api_server.h"
#include "tests/support/wait.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/tokenizer.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using testing::Answer;
using testing::ApiServer;
using testing::ApiTest;
using testing::comes_true;
using testing::events;
using testing::HttpClient;

TEST_F(ApiTest, TellsItsHealthAndItsModels) {
  HttpClient client(server_.port());
  EXPECT_EQ(client.get("/health").json(), Json({{"status", "ok"}}));
  const auto models = client.get("/v1/models").json();
  ASSERT_EQ(models["data"].size(), 4u);
  EXPECT_EQ(models["data"][0]["id"], "writer");
  EXPECT_EQ(models["data"][0]["zoo"]["task"], "language_modeling");
  EXPECT_EQ(models["data"][0]["zoo"]["max_length"], 256);
  EXPECT_EQ(client.get("/v1/models/filler").json(), models["data"][2]);
  const auto unknown = client.get("/v1/models/none");
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.json()["error"]["code"], "model_not_found");
}

// OpenAI's seed is a signed number, and clients send -1.
TEST_F(ApiTest, TakesANegativeSeedAsOneLikeOthers) {
  for (const int64_t seed : {int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    const auto first = complete({{"seed", seed}, {"temperature", 1}}).json();
    EXPECT_EQ(first["zoo"]["seed"], seed);
    EXPECT_EQ(complete({{"seed", seed}, {"temperature", 1}}).json()["choices"], first["choices"]);
  }
}

TEST_F(ApiTest, CompletesAPrompt) {
  const auto answer = complete({{"n", 2}}).json();
  EXPECT_EQ(answer["object"], "text_completion");
  EXPECT_EQ(answer["choices"].size(), 2u);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(answer["zoo"]["seed"], 4);
  const auto expected = service_->complete(
      "writer",
      CompletionRequest{.prompts = {"abc"}, .options = {.max_new_tokens = 8, .num_samples = 2, .seed = 4}});
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(answer["choices"][i]["text"], expected.outputs[i].text);
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["logprobs"], nullptr);
  }
}

TEST_F(ApiTest, AStreamJoinsToTheWholeAnswer) {
  const Json asked{{"n", 3}, {"logprobs", 3}, {"max_tokens", 20}};
  const auto whole = complete(asked).json();
  auto with_stream = asked;
  with_stream["stream"] = true;
  with_stream["stream_options"] = {{"include_usage", true}};
  const auto answer = complete(with_stream);
  EXPECT_THAT(answer.head, HasSubstr("text/event-stream"));
  auto list = events(answer.body);
  ASSERT_EQ(list.back(), "[DONE]");
  list.pop_back();
  EXPECT_EQ(list.back()["usage"], whole["usage"]);
  list.pop_back();
  std::vector<std::string> texts(3), ends(3);
  std::vector<Json> ids(3, Json::array()), offsets(3, Json::array());
  for (const auto& event : list) {
    EXPECT_EQ(event["usage"], nullptr);
    const auto& choice = event["choices"][0];
    const auto i = choice["index"].get<size_t>();
    texts[i] += choice["text"].get<std::string>();
    if (!choice["logprobs"].is_null()) {
      for (const auto& id : choice["logprobs"]["token_ids"]) ids[i].push_back(id);
      for (const auto& offset : choice["logprobs"]["text_offset"]) offsets[i].push_back(offset);
    }
    if (choice["finish_reason"].is_string()) ends[i] = choice["finish_reason"];
  }
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(texts[i], whole["choices"][i]["text"]);
    EXPECT_EQ(ids[i], whole["choices"][i]["logprobs"]["token_ids"]);
    EXPECT_EQ(offsets[i], whole["choices"][i]["logprobs"]["text_offset"]);
    EXPECT_EQ(ends[i], whole["choices"][i]["finish_reason"]);
  }
}

TEST_F(ApiTest, ManyClientsGetWhatEachGetsAlone) {
  const auto request = [](size_t i) {
    Json body{{"model", "writer"},
              {"prompt", std::string(1 + i % 9, static_cast<char>('a' + i % 8))},
              {"max_tokens", 1 + i * 7 % 40},
              {"seed", i},
              {"temperature", i % 3 == 0 ? 0.0 : 0.9},
              {"stream", i % 2 == 0}};
    if (i % 5 == 0) body["logprobs"] = 2;
    if (i % 7 == 0) body["n"] = 3;
    return body;
  };
  const auto texts = [](const Json& body, const Answer& answer) {
    std::vector<std::string> result(body.value("n", 1));
    const auto add = [&](const Json& choice) { result.at(choice["index"]) += choice["text"]; };
    if (!body["stream"]) {
      const Json whole = answer.json();
      for (const auto& choice : whole["choices"]) add(choice);
      return result;
    }
    for (const auto& event : events(answer.body)) {
      if (event.is_object()) add(event["choices"][0]);
    }
    return result;
  };
  constexpr size_t n = 64;
  std::vector<std::vector<std::string>> alone, together(n);
  for (size_t i = 0; i < n; ++i)
    alone.push_back(texts(request(i), HttpClient(server_.port()).post("/v1/completions", request(i))));
  std::vector<std::thread> clients;
  for (size_t i = 0; i < n; ++i) {
    clients.emplace_back([&, i] {
      HttpClient client(server_.port());
      // Other work on the same models meanwhile, and a client that goes away.
      if (i % 4 == 1) client.post("/v1/embeddings", {{"model", "writer"}, {"input", "abc"}});
      if (i % 4 == 2) client.post("/fill", {{"model", "filler"}, {"text", "a<mask>"}});
      HttpClient(server_.port()).begin_post("/v1/completions", request(i).dump());
      together[i] = texts(request(i), client.post("/v1/completions", request(i)));
    });
  }
  for (auto& client : clients) client.join();
  for (size_t i = 0; i < n; ++i) EXPECT_EQ(alone[i], together[i]) << i;
}

TEST_F(ApiTest, LogprobsSayWhatTheModelThinks) {
  const auto logprobs = complete({{"logprobs", 2}, {"temperature", 0}}).json()["choices"][0]["logprobs"];
  const size_t n = logprobs["tokens"].size();
  ASSERT_GT(n, 0u);
  for (const char* const key : {"token_logprobs", "top_logprobs", "text_offset", "token_ids", "top"})
    EXPECT_EQ(logprobs[key].size(), n);
  for (size_t i = 0; i < n; ++i) {
    EXPECT_EQ(logprobs["top"][i].size(), 2u);
    EXPECT_EQ(logprobs["text_offset"][i], i);
    const auto& first = logprobs["top"][i][0];
    EXPECT_EQ(logprobs["top_logprobs"][i][first["token"].get<std::string>()], first["logprob"]);
  }
}

TEST_F(ApiTest, AnEchoScoresAGivenText) {
  const auto scored =
      complete({{"prompt", "abcd"}, {"echo", true}, {"max_tokens", 0}, {"logprobs", 1}}).json();
  const auto& choice = scored["choices"][0];
  EXPECT_EQ(choice["text"], "abcd");
  EXPECT_EQ(choice["logprobs"]["tokens"], Json({"a", "b", "c", "d"}));
  EXPECT_EQ(choice["logprobs"]["token_logprobs"][0], nullptr);
  EXPECT_LT(choice["logprobs"]["token_logprobs"][3].get<double>(), 0);
  // The same of its ids, which come back as they are.
  const auto of_ids =
      complete(
          {{"prompt", choice["logprobs"]["token_ids"]}, {"echo", true}, {"max_tokens", 0}, {"logprobs", 1}})
          .json();
  EXPECT_EQ(of_ids["choices"], scored["choices"]);
  const auto stream =
      events(complete({{"echo", true}, {"max_tokens", 0}, {"logprobs", 1}, {"stream", true}}).body);
  ASSERT_EQ(stream.size(), 2u);
  EXPECT_EQ(stream[0]["choices"][0]["text"], "abc");
  EXPECT_EQ(stream[0]["choices"][0]["finish_reason"], "length");
}

TEST_F(ApiTest, OutputsEndBeforeStopTexts) {
  const auto whole = complete({{"max_tokens", 30}, {"temperature", 0}, {"ignored", nullptr}});
  EXPECT_EQ(whole.status, 400);
  const auto text =
      complete({{"max_tokens", 30}, {"temperature", 0}}).json()["choices"][0]["text"].get<std::string>();
  ASSERT_GT(text.size(), 4u);
  const auto stop = text.substr(3, 1);
  const auto cut = complete({{"max_tokens", 30}, {"temperature", 0}, {"stop", stop}}).json()["choices"][0];
  EXPECT_EQ(cut["text"], text.substr(0, text.find(stop)));
  EXPECT_EQ(cut["finish_reason"], "stop");
}

TEST_F(ApiTest, OutputsFollowAForm) {
  EXPECT_THAT(
      complete(Json::parse(R"({"regex": "g[ab]{3}"})")).json()["choices"][0]["text"].get<std::string>(),
      ::testing::MatchesRegex("g[ab][ab][ab]"));
  const auto chat = Json::parse(R"({"model": "writer", "messages": [{"role": "user", "content": "abc"}],
    "max_tokens": 100, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {
      "type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["cab", "bad"]}},
      "required": ["a", "b"]}}}})");
  const auto answer = HttpClient(server_.port()).post("/v1/chat/completions", chat).json();
  const auto value = Json::parse(answer["choices"][0]["message"]["content"].get<std::string>());
  ASSERT_TRUE(value.is_object()) << answer;
  EXPECT_TRUE(value["a"].is_number_integer());
  auto any = chat;
  any["response_format"] = {{"type", "json_object"}};
  any["max_tokens"] = 200;
  const auto made = HttpClient(server_.port()).post("/v1/chat/completions", any);
  ASSERT_EQ(made.status, 200) << made.body;
  const auto choice = made.json()["choices"][0];
  EXPECT_EQ(choice["message"]["content"].get<std::string>()[0], '{');
  if (choice["finish_reason"] == "stop") {
    EXPECT_TRUE(Json::parse(choice["message"]["content"].get<std::string>()).is_object());
  }
}

TEST_F(ApiTest, HoldsAConversation) {
  const Json body{{"model", "writer"},
                  {"messages",
                   {{{"role", "system"}, {"content", "ab"}},
                    {{"role", "user"}, {"content", {{{"type", "text"}, {"text", "cd"}}}}}}},
                  {"max_completion_tokens", 10},
                  {"seed", 3},
                  {"logprobs", true},
                  {"top_logprobs", 2}};
  HttpClient client(server_.port());
  const auto answer = client.post("/v1/chat/completions", body).json();
  EXPECT_EQ(answer["object"], "chat.completion");
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 7);  // <s>ab<s>cd>
  const auto& choice = answer["choices"][0];
  EXPECT_EQ(choice["message"]["role"], "assistant");
  std::string joined;
  for (const auto& token : choice["logprobs"]["content"]) {
    for (const auto& byte : token["bytes"]) joined += static_cast<char>(byte.get<int>());
    EXPECT_EQ(token["top_logprobs"].size(), 2u);
  }
  EXPECT_EQ(joined, choice["message"]["content"]);
  auto streamed = body;
  streamed["stream"] = true;
  std::string text;
  const auto list = events(client.post("/v1/chat/completions", streamed).body);
  EXPECT_EQ(list[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(list[0]["object"], "chat.completion.chunk");
  for (size_t i = 0; i + 1 < list.size(); ++i) text += list[i]["choices"][0]["delta"]["content"];
  EXPECT_EQ(text, choice["message"]["content"]);
}

TEST_F(ApiTest, WrongRequestsGetOneLineThatSaysWhatIsWrong) {
  HttpClient client(server_.port());
  const auto error = [&](Json more) {
    const auto answer = client.post("/v1/completions", completion(more));
    EXPECT_EQ(answer.status, 400) << answer.body;
    return answer.error();
  };
  EXPECT_EQ(error({{"temperature", -1}}), "temperature must be a number from 0 to 1000000");
  EXPECT_EQ(error({{"max_token", 1}}), "max_token is not known here: is max_tokens meant?");
  EXPECT_EQ(error({{"prompt", nullptr}}), "prompt is missing");
  EXPECT_EQ(error({{"prompt", {{{"a", 1}}}}}),
            "prompt must be a text, a list of texts, a list of token ids, or a list of such lists");
  EXPECT_THAT(error({{"prompt", {1, 99999}}}), HasSubstr("99999 is not a token id"));
  const auto too_long = client.post("/v1/completions", completion({{"prompt", std::string(257, 'a')}}));
  EXPECT_EQ(too_long.json()["error"]["code"], "context_length_exceeded");
  EXPECT_EQ(error({{"logprobs", 21}}), "logprobs must be a whole number from 0 to 20");
  EXPECT_EQ(error({{"seed", 1.5}}), "seed must be a whole number of 64 bits");
  EXPECT_EQ(error({{"seed", uint64_t{1} << 63}}), "seed must be a whole number of 64 bits");
  EXPECT_EQ(error({{"stop", {""}}}), "stop must have texts of 1 to 1000 bytes");
  EXPECT_EQ(error({{"max_tokens", 0}}), "max_tokens must be at least 1 without echo");
  EXPECT_THAT(error({{"regex", "("}}), HasSubstr("regex"));
  EXPECT_EQ(error({{"logit_bias", {{"x", 1}}}}),
            "logit_bias must have ids of tokens as keys, such as \"42\"");
  const auto unable = client.post("/v1/completions", completion({{"model", "classifier"}}));
  EXPECT_EQ(unable.status, 400);
  EXPECT_THAT(unable.error(), HasSubstr("cannot do completions"));
  EXPECT_EQ(client.post("/v1/completions", completion({{"model", "none"}})).status, 404);
  for (const char* const body : {"", "{", "[1]", "\"\xff\"", "{\"model\": \"\xc3\x28\"}", "{} {}", "nul"}) {
    client.begin_post("/v1/completions", body);
    const auto answer = client.read_answer();
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_THAT(answer.error(), HasSubstr("the body")) << body;
  }
  // Depth, and many keys.
  client.begin_post("/v1/completions", std::string(100000, '['));
  EXPECT_EQ(client.read_answer().status, 400);
}

TEST_F(ApiTest, EmbedsPredictsFillsTranslatesAndLooks) {
  HttpClient client(server_.port());
  const auto lists = client.post("/v1/embeddings", {{"model", "writer"}, {"input", {"abc", "d"}}}).json();
  ASSERT_EQ(lists["data"].size(), 2u);
  EXPECT_EQ(lists["data"][0]["embedding"].size(), 24u);
  double norm = 0;
  for (const auto& value : lists["data"][0]["embedding"]) norm += value.get<double>() * value.get<double>();
  EXPECT_NEAR(norm, 1, 1e-5);
  const auto packed =
      client.post("/v1/embeddings", {{"model", "writer"}, {"input", "abc"}, {"encoding_format", "base64"}})
          .json();
  EXPECT_EQ(packed["data"][0]["embedding"].get<std::string>().size(), 128u);  // 96 bytes
  EXPECT_EQ(client.post("/v1/embeddings", {{"model", "writer"}, {"input", "abc"}, {"dimensions", 3}}).status,
            400);

  const auto classes = client.post("/predict", {{"model", "classifier"}, {"texts", {"abc"}}}).json();
  EXPECT_EQ(classes["predictions"][0]["labels"].size(), 2u);
  const auto filled = client.post("/fill", {{"model", "filler"}, {"text", "a<mask>c"}, {"top", 2}}).json();
  ASSERT_EQ(filled["masks"].size(), 1u);
  EXPECT_EQ(filled["masks"][0]["candidates"].size(), 2u);
  const auto translated =
      client.post("/translate", {{"model", "translator"}, {"texts", {"abc"}}, {"alignment", true}}).json();
  ASSERT_EQ(translated["translations"].size(), 1u) << translated;
  const auto& alignment = translated["translations"][0]["alignment"];
  if (!alignment.is_null()) {
    EXPECT_EQ(alignment["weights"].size(), alignment["target"].size());
    EXPECT_EQ(alignment["weights"][0].size(), alignment["source"].size());
    const auto errors = alignment["alignment_errors"].get<std::vector<double>>();
    ASSERT_EQ(errors.size(), 2u);
    EXPECT_EQ(alignment["layer"], errors[1] < errors[0] ? 1 : 0);
  }
  const auto maps = client.post("/attention", {{"model", "writer"}, {"text", "abcd"}}).json();
  EXPECT_EQ(maps["source"].size(), 4u);
  EXPECT_EQ(maps["maps"][0]["name"], "decoder");
  EXPECT_EQ(maps["maps"][0]["layers"].size(), 2u);
  EXPECT_EQ(maps["maps"][0]["layers"][0].size(), 2u);
  EXPECT_EQ(maps["maps"][0]["layers"][0][0].size(), 4u);
  EXPECT_EQ(client.post("/attention", {{"model", "writer"}, {"text", std::string(257, 'a')}}).status, 400);
  const auto tokens = client.post("/tokenize", {{"model", "writer"}, {"text", "ab c"}}).json()["tokens"];
  ASSERT_EQ(tokens.size(), 4u);
  EXPECT_EQ(tokens[2]["text"], " ");
  EXPECT_EQ(tokens[3]["start"], 3);
  const auto ids = client.post("/tokenize", {{"model", "writer"}, {"prompt", "ab c"}}).json();
  EXPECT_EQ(ids["count"], 4);
  EXPECT_EQ(ids["max_model_len"], 256);
  ASSERT_EQ(ids["tokens"].size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(ids["tokens"][i], tokens[i]["id"]);
  EXPECT_EQ(client.post("/detokenize", {{"model", "writer"}, {"tokens", ids["tokens"]}}).json(),
            (Json{{"prompt", "ab c"}}));
  EXPECT_THAT(client.post("/detokenize", {{"model", "writer"}, {"tokens", {100000}}}).error(),
              HasSubstr("no token 100000"));
  EXPECT_THAT(client.post("/detokenize", {{"model", "writer"}, {"tokens", "ab"}}).error(),
              HasSubstr("tokens"));
  EXPECT_THAT(client.post("/tokenize", {{"prompt", "ab c"}}).error(), HasSubstr("several"));
  EXPECT_EQ(client.get("/tokenizer_info").status, 400) << "which of its models?";
}

TEST(TokenJson, LaterBytesOfACharacterStandWhereItDoes) {
  TokenizerConfig config;
  config.type = TokenizerKind::byte;
  const auto tokenizer = make_tokenizer(config, SpecialTokenSet::all, [](const auto&) {});
  std::vector<CompletionToken> tokens;
  for (const int64_t id : tokenizer->encode("äb€")) tokens.push_back({.id = id});
  int64_t offset = 5;
  EXPECT_EQ(completion_logprobs(tokens, *tokenizer, offset)["text_offset"],
            nlohmann::ordered_json({5, 5, 6, 7, 7, 7}));
  EXPECT_EQ(offset, 8);
}

TEST(TokenJson, TheLikelierOfTwoTokensWithOneNameCounts) {
  TokenizerConfig config;
  config.type = TokenizerKind::byte;
  const auto tokenizer = make_tokenizer(config, SpecialTokenSet::all, [](const auto&) {});
  // Neither byte is a character of its own, and so both have the name of what cannot be shown.
  const auto first = tokenizer->encode("ä").at(0), second = tokenizer->encode("ö").at(1);
  const std::vector<CompletionToken> tokens{
      {.id = first, .logprob = -0.5, .likeliest = {{first, -0.5}, {second, -2.0}}}};
  int64_t offset = 0;
  const auto top = completion_logprobs(tokens, *tokenizer, offset)["top_logprobs"][0];
  ASSERT_EQ(top.size(), 1u) << top;
  EXPECT_EQ(top.begin().value(), -0.5);
}

TEST_F(ApiTest, TextsThatAreTooLongAreRefusedByEveryPath) {
  HttpClient client(server_.port());
  const std::string text(300, 'a');
  const auto refused = [&](const std::string& path, nlohmann::json request) {
    const auto answer = client.post(path, std::move(request));
    EXPECT_EQ(answer.status, 400) << path;
    EXPECT_EQ(answer.json()["error"]["code"], "context_length_exceeded") << path << answer.json();
  };
  refused("/v1/embeddings", {{"model", "writer"}, {"input", text}});
  refused("/v1/embeddings", {{"model", "writer"}, {"input", std::vector<int>(300, 5)}});
  refused("/v1/completions", {{"model", "writer"}, {"prompt", text}, {"max_tokens", 1}});
  refused("/v1/completions", {{"model", "writer"}, {"prompt", std::vector<int>(300, 5)}, {"max_tokens", 1}});
  refused("/fill", {{"model", "filler"}, {"text", text + "<mask>"}});
  refused("/translate", {{"model", "translator"}, {"texts", {text}}});
  // A classifier says that it read the beginning.
  const auto cut = client.post("/predict", {{"model", "classifier"}, {"texts", {text}}}).json();
  EXPECT_EQ(cut["predictions"][0]["cut"], true);
  EXPECT_LT(cut["usage"]["prompt_tokens"], 300);
}

TEST_F(ApiTest, IdsAreReadAsTheyAre) {
  HttpClient client(server_.port());
  const auto tokens = client.post("/tokenize", {{"model", "writer"}, {"text", "abc"}}).json()["tokens"];
  nlohmann::json ids;
  for (const auto& token : tokens) ids.push_back(token["id"]);
  const auto of_ids = client.post("/v1/embeddings", {{"model", "writer"}, {"input", ids}}).json();
  const auto of_text = client.post("/v1/embeddings", {{"model", "writer"}, {"input", "abc"}}).json();
  EXPECT_EQ(of_ids["usage"]["prompt_tokens"], 3);
  EXPECT_EQ(of_ids["usage"], of_text["usage"]);
  for (size_t i = 0; i < of_text["data"][0]["embedding"].size(); ++i) {
    EXPECT_NEAR(of_ids["data"][0]["embedding"][i].get<double>(),
                of_text["data"][0]["embedding"][i].get<double>(), 1e-6);
  }
  EXPECT_EQ(client.post("/v1/embeddings", {{"model", "writer"}, {"input", {1, 100000}}}).status, 400);
  EXPECT_EQ(client.post("/v1/embeddings", {{"model", "writer"}, {"input", {-1}}}).status, 400);
}

TEST_F(ApiTest, MediaTypesAreComparedInAnyCase) {
  HttpClient client(server_.port());
  const auto status_of = [&](const std::string& media_type) {
    const std::string body = R"({"model": "writer", "text": "abc"})";
    client.send("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + media_type +
                "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.read_answer().status;
  };
  for (const char* const good : {"application/json", "Application/JSON", "application/json; charset=utf-8",
                                 "application/json ;charset=utf-8"})
    EXPECT_EQ(status_of(good), 200) << good;
  for (const char* const wrong : {"application/jsonx", "application/json-patch+json", "text/json"}) {
    HttpClient another(server_.port());
    another.send(std::string("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: ") + wrong +
                 "\r\nContent-Length: 2\r\n\r\n{}");
    EXPECT_EQ(another.read_answer().status, 415) << wrong;
  }
}

TEST_F(ApiTest, ManyTextsOfARequestGetWhatEachGetsAlone) {
  HttpClient client(server_.port());
  nlohmann::json texts;  // more than are worked on at once
  for (size_t i = 0; i < 2 * kTextsAtOnce + 3; ++i)
    texts.push_back(std::string(1 + i % 5, "abcdefgh"[i % 8]));
  const auto vectors = client.post("/v1/embeddings", {{"model", "writer"}, {"input", texts}}).json()["data"];
  const auto labels =
      client.post("/predict", {{"model", "classifier"}, {"texts", texts}}).json()["predictions"];
  const auto answers =
      client.post("/translate", {{"model", "translator"}, {"texts", texts}}).json()["translations"];
  for (const auto& list : {vectors, labels, answers}) ASSERT_EQ(list.size(), texts.size());
  for (size_t i = 0; i < texts.size(); i += 6) {
    EXPECT_EQ(vectors[i]["index"], i);
    const auto vector = client.post("/v1/embeddings", {{"model", "writer"}, {"input", texts[i]}})
                            .json()["data"][0]["embedding"];
    for (size_t d = 0; d < vector.size(); ++d)
      EXPECT_NEAR(vectors[i]["embedding"][d].get<double>(), vector[d].get<double>(), 1e-5);
    const auto label = client.post("/predict", {{"model", "classifier"}, {"texts", {texts[i]}}}).json();
    EXPECT_EQ(labels[i]["input"], texts[i]);
    EXPECT_NEAR(labels[i]["labels"][0]["probability"].get<double>(),
                label["predictions"][0]["labels"][0]["probability"].get<double>(), 1e-5);
    const auto answer = client.post("/translate", {{"model", "translator"}, {"texts", {texts[i]}}}).json();
    EXPECT_EQ(answers[i]["text"], answer["translations"][0]["text"]);
  }
}

std::string big_endian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift);
  return bytes;
}

std::string png_chunk(const std::string& kind, const std::string& data) {
  const auto sum = ::crc32(0, reinterpret_cast<const unsigned char*>((kind + data).data()),
                           static_cast<unsigned>(kind.size() + data.size()));
  return big_endian(static_cast<uint32_t>(data.size())) + kind + data +
         big_endian(static_cast<uint32_t>(sum));
}

/// A PNG file that promises so many pixels and has none.
std::string empty_png(uint32_t width, uint32_t height) {
  const auto head = big_endian(width) + big_endian(height) + std::string("\x08\x02\0\0\0", 5);
  return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", head) + png_chunk("IDAT", "") + png_chunk("IEND", "");
}

TEST(Reranking, OrdersTextsByTheirScores) {
  const testing::SmallRuns runs;
  Service service(
      {.models = {{.id = "ranker", .path = runs.ranker()}, {.id = "writer", .path = runs.writer()}}});
  const testing::ApiServer server(service);
  const auto post = [&](const char* path, const Json& body) {
    return HttpClient(server.port()).post(path, body);
  };
  const std::vector<std::string> texts = {"abc", "hgf", "aaaaaa", "bd", "cc", "fgh", "a", "gg", "efg", "de"};
  auto pairs = Json::array();
  for (const auto& text : texts) pairs.push_back({"abcd", text});
  std::vector<std::pair<double, size_t>> expected;
  const auto predicted = post("/predict", {{"model", "ranker"}, {"pairs", pairs}}).json();
  for (size_t i = 0; i < texts.size(); ++i)
    expected.emplace_back(-predicted["predictions"][i]["score"].get<double>(), i);
  std::ranges::sort(expected);
  Json documents = texts;
  documents[3] = {{"text", texts[3]}};
  const Json asked{
      {"model", "ranker"}, {"query", "abcd"}, {"documents", documents}, {"return_documents", true}};
  const auto found = post("/v1/rerank", asked).json();
  ASSERT_EQ(found["results"].size(), texts.size());
  EXPECT_EQ(found["usage"], predicted["usage"]);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto& result = found["results"][i];
    EXPECT_EQ(result["index"], expected[i].second);
    EXPECT_NEAR(result["relevance_score"].get<double>(), 1 / (1 + std::exp(expected[i].first)), 1e-6);
    EXPECT_EQ(result["document"]["text"], texts[expected[i].second]);
  }
  auto two = asked;
  two.update({{"top_n", 2}, {"return_documents", false}});
  const auto best = post("/v1/rerank", two).json()["results"];
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[1]["index"], expected[1].second);
  EXPECT_FALSE(best[0].contains("document"));
  for (const Json& wrong : {Json::array(), Json("abc"), Json::array({1}), Json::array({{{"title", "a"}}})}) {
    auto body = asked;
    body["documents"] = wrong;
    EXPECT_EQ(post("/v1/rerank", body).status, 400) << wrong;
  }
  auto other = asked;
  other["model"] = "writer";
  EXPECT_EQ(post("/v1/rerank", other).status, 400);
}

TEST_F(ApiTest, RefusesPicturesThatAreNone) {
  HttpClient client(server_.port());
  const auto error = [&](const std::string& picture) {
    const auto answer = client.post("/predict", {{"model", "classifier"}, {"images", {picture, picture}}});
    EXPECT_EQ(answer.status, 400) << answer.body;
    return answer.error();
  };
  EXPECT_EQ(error("data:image/png;base64,!!!!"), "a picture is not base64, with its padding");
  EXPECT_THAT(error("data:text/plain,abc"), HasSubstr("data:image/png;base64"));
  EXPECT_THAT(error(to_base64("GIF89a")), HasSubstr("the picture"));
  EXPECT_THAT(error(to_base64(empty_png(60000, 60000))), HasSubstr("pixels"));  // 10 GB of them
  EXPECT_THAT(error(to_base64(empty_png(8, 8))), HasSubstr("the picture"));
  EXPECT_THAT(error("/etc/passwd"), HasSubstr("base64"));
  Json many(17, "");
  EXPECT_THAT(client.post("/predict", {{"model", "classifier"}, {"images", many}}).error(),
              HasSubstr("has 17 texts, and may have 16"));
}

TEST_F(ApiTest, RefusesWhatIsNotForIt) {
  HttpClient client(server_.port());
  EXPECT_EQ(client.get("/nothing").status, 404);
  EXPECT_EQ(client.get("/../../etc/passwd").status, 404);
  EXPECT_EQ(client.get("/v1/models/..%2f..%2fetc").status, 404);
  const auto method = client.get("/v1/completions");
  EXPECT_EQ(method.status, 405);
  EXPECT_THAT(method.head, HasSubstr("Allow: POST\r\n"));
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n"
      "Content-Length: 2\r\n\r\n{}");
  EXPECT_EQ(client.read_answer().status, 415);
  HttpClient rebound(server_.port());
  rebound.send("GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n");
  const auto answer = rebound.read_answer();
  EXPECT_EQ(answer.status, 403);
  EXPECT_THAT(answer.error(), HasSubstr("'evil.example' is not this machine"));
  for (const std::string host :
       {"127.0.0.1:80:evil", "[::1]evil", "localhost.evil", "localhostevil", "[::1", ""}) {
    HttpClient other(server_.port());
    other.send("GET /health HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    EXPECT_EQ(other.read_answer().status, 403) << host;
  }
  for (const std::string host : {"LocalHost:80", "[::1]:9", "127.0.0.1"}) {
    HttpClient own(server_.port());
    own.send("GET /health HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    EXPECT_EQ(own.read_answer().status, 200) << host;
  }
}

TEST_F(ApiTest, AnswersHeadLikeGetWithoutABody) {
  HttpClient client(server_.port());
  for (const char* const path :
       {"/health", "/v1/models", "/openapi.json", "/", "/nothing", "/v1/completions"}) {
    const auto get = client.get(path);
    client.send(std::string("HEAD ") + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const auto head = client.read_until("\r\n\r\n");
    EXPECT_EQ(head.substr(0, head.find("\r\n")), get.head.substr(0, get.head.find("\r\n"))) << path;
    EXPECT_THAT(head, HasSubstr("Content-Type: ")) << path;
  }
  EXPECT_EQ(client.get("/health").json()["status"], "ok");  // nothing was left in the connection
}

TEST_F(ApiTest, RepeatedHeadersAddNoRights) {
  ApiServer locked(*service_, {.api_key = "secret"});
  HttpClient client(locked.port());
  EXPECT_EQ(
      client.get("/v1/models", "Authorization: Bearer wrong\r\nAuthorization: Bearer secret\r\n").status,
      401);
  EXPECT_EQ(
      client.get("/v1/models", "Authorization: Bearer secret\r\nAuthorization: Bearer wrong\r\n").status,
      401);
  EXPECT_EQ(client.get("/health", "Host: evil.example\r\n").status, 403);  // beside localhost
}

TEST_F(ApiTest, WantsItsKeyForAllButThePageAndTheHealth) {
  ApiServer locked(*service_, {.api_key = "secret"});
  HttpClient client(locked.port());
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_THAT(client.get("/").head, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_EQ(client.get("/v1/models").status, 401);
  EXPECT_EQ(client.get("/nothing").status, 401);
  EXPECT_EQ(client.get("/v1/models", "Authorization: Bearer wrong\r\n").status, 401);
  EXPECT_EQ(client.get("/v1/models", "Authorization: secret\r\n").status, 401);
  for (const std::string scheme : {"Bearer", "bearer", "BEARER"})
    EXPECT_EQ(client.get("/v1/models", "Authorization: " + scheme + " secret\r\n").status, 200);
}

TEST_F(ApiTest, AWrongMethodIsNamedBeforeABody) {
  for (const auto& [path, status] :
       {std::pair("/v1/completions", 405), {"/nothing", 404}, {"/v1/models", 400}}) {
    HttpClient client(server_.port());
    client.send(fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{{}}", path));
    EXPECT_EQ(client.read_answer().status, status) << path;
    EXPECT_TRUE(client.is_at_end()) << "its body is no request";
  }
}

TEST_F(ApiTest, SlicesOfATextAreComparedWithAnotherModels) {
  HttpClient client(server_.port());
  std::string text;
  for (int i = 0; i < 60; ++i) text += i % 7 == 0 ? "12 " : "abcd ";
  text.resize(200);
  const auto asked = [&](const Json& more) {
    Json body = {{"model", "writer"}, {"text", text}};
    body.update(more);
    return client.post("/slices", body);
  };
  const auto alone = asked(Json::object()).json();
  EXPECT_EQ(alone["bytes"], text.size());
  const auto scored =
      client
          .post("/v1/completions",
                {{"model", "writer"}, {"prompt", text}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 0}})
          .json();
  double bits = 0;
  for (const auto& logprob : scored["choices"][0]["logprobs"]["token_logprobs"])
    if (logprob.is_number()) bits -= logprob.get<double>() / std::numbers::ln2;
  EXPECT_NEAR(alone["bits_per_byte"].get<double>() * static_cast<double>(text.size()), bits, 0.05 * bits)
      << "a completion does not predict the first token, and reads nothing before it";
  double share = 0, of_characters = 0;
  for (const auto& slice : alone["slices"]) {
    EXPECT_TRUE(slice["baseline"].is_null());
    if (slice["kind"] != "characters") continue;
    share += slice["share"].get<double>();
    of_characters += slice["share"].get<double>() * slice["bits_per_byte"].get<double>();
  }
  EXPECT_NEAR(share, 1, 1e-9);
  EXPECT_NEAR(of_characters, alone["bits_per_byte"].get<double>(), 1e-6);

  for (const auto& slice : asked({{"baseline", alone["parts"]}}).json()["slices"]) {
    EXPECT_EQ(slice["baseline"]["difference"], 0) << slice;
    EXPECT_EQ(slice["baseline"]["verdict"], "same");
    EXPECT_EQ(slice["baseline"]["value"], slice["bits_per_byte"]);
  }
  auto worse = alone["parts"];
  for (auto& list : worse["bits"])
    for (auto& number : list) number = number.get<double>() * 2;
  for (const auto& slice : asked({{"baseline", worse}}).json()["slices"])
    EXPECT_LT(slice["baseline"]["difference"].get<double>(), 0) << slice;

  auto shorter = alone["parts"];
  for (const char* const key : {"bits", "bytes"})
    for (auto& list : shorter[key]) list.erase(0);
  EXPECT_THAT(asked({{"baseline", shorter}}).error(), HasSubstr("another text"));
  auto other = text;
  other[100] = '!';
  EXPECT_THAT(asked({{"baseline", alone["parts"]}, {"text", other}}).error(), HasSubstr("another text"));
  auto uneven = alone["parts"];
  uneven["bits"][3].erase(0);
  EXPECT_THAT(asked({{"baseline", uneven}}).error(), HasSubstr("baseline.bits"));
  EXPECT_THAT(asked({{"baseline", Json::object()}}).error(), HasSubstr("baseline.bits"));
  EXPECT_THAT(asked({{"text", ""}}).error(), HasSubstr("between 1 and 20000 bytes"));
  EXPECT_EQ(asked({{"text", std::string(1000, 'a')}}).status, 400) << "more than the model reads at once";
  EXPECT_EQ(asked({{"model", "translator"}}).status, 400);
  EXPECT_EQ(asked({{"model", "classifier"}}).status, 400);
}

TEST_F(ApiTest, DescribesItself) {
  const auto description = HttpClient(server_.port()).get("/openapi.json").json();
  for (const char* const path : {"/v1/models",      "/v1/models/{id}",
                                 "/v1/completions", "/v1/chat/completions",
                                 "/v1/responses",   "/v1/responses/{id}",
                                 "/v1/embeddings",  "/v1/audio/transcriptions",
                                 "/tokenize",       "/fill",
                                 "/predict",        "/translate",
                                 "/attention",      "/lens",
                                 "/attribute",      "/ablate",
                                 "/patch",          "/slices",
                                 "/health",         "/metrics",
                                 "/openapi.json"})
    EXPECT_TRUE(description["paths"].contains(path)) << path;
  EXPECT_FALSE(description.contains("security")) << "this server has no key";
  const auto& model = description["components"]["schemas"]["Model"]["properties"]["zoo"]["properties"];
  EXPECT_EQ(model["can"]["items"]["enum"], Json(config_names(Ability{})));
  // Options of generation are those of the program, with the same limits.
  for (const char* const request : {"CompletionRequest", "ChatRequest", "ResponseRequest"}) {
    const auto& options = description["components"]["schemas"][request]["properties"];
    EXPECT_EQ(options["top_p"]["anyOf"][0],
              nlohmann::json::parse(R"({"type": "number", "exclusiveMinimum": 0.0, "maximum": 1.0})"));
    EXPECT_EQ(options["min_tokens"]["anyOf"][0]["maximum"], 4096) << "the server's own limit is narrower";
    EXPECT_EQ(options["n"]["anyOf"][0]["maximum"], 256);
    EXPECT_EQ(options["ignore_eos"]["anyOf"][0]["type"], "boolean");
    EXPECT_FALSE(options.contains("beam")) << "requests have no beams";
    EXPECT_FALSE(options.contains("weights"));
  }
}

TEST_F(ApiTest, AWholeNumberMayHaveAPoint) {
  const auto written = [&](nlohmann::json body) {
    body["seed"] = 1;
    return complete(body).json()["choices"][0]["text"];
  };
  EXPECT_EQ(written({{"prompt", {1.0, 2}}, {"max_tokens", 3.0}}),
            written({{"prompt", {1, 2}}, {"max_tokens", 3}}));
  for (const auto& [key, wrong] :
       {std::pair("max_tokens", 3.5), {"seed", 1e300}, {"seed", 9007199254740994.0}}) {
    const auto answer = complete({{"prompt", "a"}, {key, wrong}});
    EXPECT_EQ(answer.status, 400) << wrong;
    EXPECT_THAT(answer.body, HasSubstr("must be a whole number")) << wrong;
  }
}

TEST_F(ApiTest, CountsForPrometheus) {
  HttpClient client(server_.port());
  client.get("/health");
  client.get("/a/name/of/a/stranger");
  const auto answer = client.get("/metrics");
  EXPECT_THAT(answer.head, HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(answer.body, HasSubstr("zoo_http_requests_total{route=\"/health\",status=\"200\"} 1\n"));
  EXPECT_THAT(answer.body, HasSubstr("zoo_http_requests_total{route=\"other\",status=\"404\"} 1\n"));
  EXPECT_THAT(answer.body, HasSubstr("zoo_model_loaded{model=\"writer\"} 1\n"));
  EXPECT_THAT(answer.body, ::testing::Not(HasSubstr("stranger")));
}

TEST_F(ApiTest, LogsRequestsWithoutTexts) {
  complete({{"prompt", "abcabc"}});
  ASSERT_TRUE(comes_true([&] { return !server_.log().empty(); }));
  const auto record = server_.log().front();
  EXPECT_EQ(record.path, "/v1/completions");
  EXPECT_EQ(record.status, 200);
  EXPECT_EQ(record.note.model, "writer");
  EXPECT_EQ(record.note.tokens_in, 6);
}

}  // namespace
}  // namespace zoo

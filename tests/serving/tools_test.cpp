// Tools in conversations: what templates show, what a model writes, and what a client gets.

#include "serving/api/tools.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/serving/api_server.h"

namespace zoo {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using testing::ApiServer;
using testing::HttpClient;

ChatTemplate chat_template(const std::string& source) { return {{{"default", source}}, {}, {}}; }

ToolOffer offer_of(std::vector<std::string> names, ToolChoice choice = ToolChoice::automatic) {
  return {.choice = choice, .callable = std::move(names)};
}

/// The text and the calls of an answer that comes in pieces of `size` bytes, as one line.
std::string divided(CallFormat format, const ToolOffer& offer, const std::string& answer, size_t size) {
  CallReader reader(format, offer);
  std::string text, calls;
  const auto add = [&](const CallReader::Found& found) {
    text += found.text;
    for (const auto& call : found.calls) calls += "|" + call.name + call.arguments;
  };
  for (size_t at = 0; at < answer.size(); at += size)
    add(reader.read(answer.substr(at, size), CallReader::Rest::follows));
  add(reader.read("", CallReader::Rest::is_none));
  return text + calls;
}

TEST(CallFormat, IsThatOfTheTemplate) {
  const std::string loop = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}";
  const std::string ends = "{% endfor %}{% endfor %}";
  const std::string json = "{{ c.function.arguments | tojson }}";
  EXPECT_EQ(
      call_format(chat_template(loop + "<tool_call>\n{\"name\": \"{{ c.function.name }}\", \"arguments\": " +
                                json + "}\n</tool_call>" + ends)),
      CallFormat::tags);
  EXPECT_EQ(call_format(chat_template(loop + "{\"name\": \"{{ c.function.name }}\", \"parameters\": " + json +
                                      "}" + ends)),
            CallFormat::object);
  EXPECT_EQ(
      call_format(chat_template(
          loop + "[TOOL_CALLS][{\"name\": \"{{ c.function.name }}\", \"arguments\": " + json + "}]" + ends)),
      CallFormat::list);
  for (const std::string between : {"[ARGS]", "[CALL_ID]{{ c.id }}[ARGS]"}) {
    EXPECT_EQ(call_format(chat_template(loop + "[TOOL_CALLS]{{ c.function.name }}" + between + json + ends)),
              CallFormat::named);
  }
  EXPECT_EQ(call_format(chat_template(loop + "{{ c.function.name }}" + ends)), std::nullopt);
  EXPECT_EQ(call_format(chat_template("{% for m in messages %}{{ m.content }}{% endfor %}")), std::nullopt);
  EXPECT_EQ(call_format(chat_template("{{ raise_exception('no') }}")), std::nullopt);
}

TEST(CallReader, DividesAnswersWhateverTheirPiecesAre) {
  const auto offer = offer_of({"f", "g"});
  struct Case {
    CallFormat format;
    std::string answer, expected;
  };
  const std::string f = R"({"name": "f", "arguments": {"x": "</b>"}})",
                    g = R"({"name": "g", "parameters": {}})";
  const std::vector<Case> cases = {
      {CallFormat::tags, "Hi <b>!", "Hi <b>!"},
      {CallFormat::tags, "Hi \n", "Hi \n"},
      {CallFormat::tags, "Let me. \n<tool_call>\n" + f + "\n</tool_call>", R"(Let me.|f{"x":"</b>"})"},
      {CallFormat::tags, "<tool_call>" + f + "</tool_call>\n<tool_call>" + g + "</tool_call>\n",
       R"(|f{"x":"</b>"}|g{})"},
      {CallFormat::tags, "<tool_call>" + g, "|g{}"},  // the model ended before the tag
      {CallFormat::tags, "<tool_call>{oops</tool_call> so", "<tool_call>{oops</tool_call> so"},
      {CallFormat::tags, R"(<tool_call>{"name": "h", "arguments": {}}</tool_call>)",
       R"(<tool_call>{"name": "h", "arguments": {}}</tool_call>)"},
      {CallFormat::tags, "a <tool_call", "a <tool_call"},
      {CallFormat::object, g, "|g{}"},
      {CallFormat::object, " a {", " a {"},
      {CallFormat::object, "{\"a\": 1}", "{\"a\": 1}"},
      {CallFormat::list, "[" + f + ", " + g + "]", R"(|f{"x":"</b>"}|g{})"},
      {CallFormat::list, "[1]", "[1]"},
      {CallFormat::list, "Hi [a] \n[TOOL_CALLS][" + f + "]", R"(Hi [a]|f{"x":"</b>"})"},
      {CallFormat::list, "[TOOL_CALLS] [" + g + "]", "|g{}"},
      {CallFormat::list, "[TOOL_CALLS][1]", "[TOOL_CALLS][1]"},
      {CallFormat::list, "Hi [TOOL_", "Hi [TOOL_"},
      {CallFormat::named, "[TOOL_CALLS]f[ARGS]{\"x\": 1}[TOOL_CALLS]g[CALL_ID]abc[ARGS]{}",
       R"(|f{"x":1}|g{})"},
      {CallFormat::named, "So. [TOOL_CALLS]f[ARGS]{\"x\": \"[TOOL_CALLS]\"}", R"(So.|f{"x":"[TOOL_CALLS]"})"},
      {CallFormat::named, "f[ARGS]{}", "f[ARGS]{}"},
      {CallFormat::named, "[TOOL_CALLS]h[ARGS]{}", "[TOOL_CALLS]h[ARGS]{}"},
      {CallFormat::named, "[TOOL_CALLS]f[ARGS]{", "[TOOL_CALLS]f[ARGS]{"},
      {CallFormat::named, " [a", " [a"}};
  for (const auto& [format, answer, expected] : cases) {
    for (size_t size = 1; size <= answer.size(); ++size)
      EXPECT_EQ(divided(format, offer, answer, size), expected) << answer << " in pieces of " << size;
  }
  auto one = offer;
  one.most = CallCount::one;
  EXPECT_EQ(divided(CallFormat::list, one, "[" + f + ", " + g + "]", 5), R"(|f{"x":"</b>"})");
  EXPECT_EQ(divided(CallFormat::named, one, "[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS]g[ARGS]{}", 5), "|f{}");
  EXPECT_EQ(divided(CallFormat::tags, one, "<tool_call>" + g + "</tool_call><tool_call>" + g, 5), "|g{}");
}

class ToolsOfTheApi : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    runs_ = std::make_unique<testing::SmallRuns>();
    const std::string name = "{{ c.function.name }}", arguments = "{{ c.function.arguments | tojson }}",
                      object = R"({"name": ")" + name + R"(", "arguments": )" + arguments + "}";
    const auto other = [&](const std::string& id, const std::vector<std::string>& special,
                           const std::vector<std::string>& plain, const std::string& call) {
      return ModelSource{.id = id, .path = runs_->caller(id, special, plain, call)};
    };
    service_ = std::make_unique<Service>(ServiceOptions{
        .models = {
            {.id = "caller", .path = runs_->caller()},
            {.id = "writer", .path = runs_->writer()},
            other("tags", {}, {"<tool_call>"}, "<tool_call>\n" + object + "\n</tool_call>"),
            other("hidden tags", {"<tool_call>", "</tool_call>"}, {},
                  "<tool_call>\n" + object + "\n</tool_call>"),
            other("object", {}, {R"({"name": ")"},
                  R"({"name": ")" + name + R"(", "parameters": )" + arguments + "}"),
            other("list", {"[TOOL_CALLS]"}, {}, "[TOOL_CALLS][" + object + "]"),
            other("named", {"[TOOL_CALLS]", "[ARGS]"}, {}, "[TOOL_CALLS]" + name + "[ARGS]" + arguments)}});
  }
  static void TearDownTestSuite() {
    service_.reset();
    runs_.reset();
  }

  static Json tool(const std::string& name, const Json& parameters) {
    return {{"type", "function"}, {"function", {{"name", name}, {"parameters", parameters}}}};
  }
  static Json asked(Json more) {
    Json body{
        {"model", "caller"},
        {"messages", {{{"role", "user"}, {"content", "Hi"}}}},
        {"max_tokens", 200},
        {"seed", 3},
        {"tools",
         {tool("add", {{"type", "object"},
                       {"properties", {{"a", {{"$ref", "#/$defs/digit"}}}, {"b", {{"type", "boolean"}}}}},
                       {"required", {"a", "b"}},
                       {"$defs", {{"digit", {{"enum", {1, 2, 3}}}}}}}),
          tool("stop", {{"type", "object"}})}}};
    body.update(more);
    return body;
  }
  testing::Answer chat(Json more) const {
    return HttpClient(server_.port()).post("/v1/chat/completions", asked(std::move(more)));
  }
  Json choice(Json more) const {
    const auto answer = chat(std::move(more));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["choices"][0];
  }
  /// The whole message of a stream.
  Json streamed(Json more) const {
    more["stream"] = true;
    Json message{{"role", nullptr}, {"content", ""}, {"tool_calls", Json::array()}};
    for (const auto& event : testing::events(chat(std::move(more)).body)) {
      if (event == "[DONE]") break;
      const auto& part = event["choices"][0];
      const auto& delta = part["delta"];
      if (delta.contains("role")) message["role"] = delta["role"];
      if (delta.contains("content"))
        message["content"] = message["content"].get<std::string>() + delta["content"].get<std::string>();
      for (const auto& call : delta.value("tool_calls", Json::array())) {
        EXPECT_EQ(call["index"], message["tool_calls"].size());
        message["tool_calls"].push_back(call);
      }
      message["finish_reason"] = part["finish_reason"];
    }
    return message;
  }

  static inline std::unique_ptr<testing::SmallRuns> runs_;
  static inline std::unique_ptr<Service> service_;
  ApiServer server_{*service_};
};

TEST_F(ToolsOfTheApi, CallsThatAModelWritesAreGiven) {
  // The form says what the model writes.
  const Json written{
      {"regex", R"(So: <tool_call>\{"name": "add", "arguments": \{"a": 2, "b": true\}\}</tool_call>)"}};
  const auto found = choice(written);
  EXPECT_EQ(found["finish_reason"], "tool_calls");
  EXPECT_EQ(found["message"]["content"], "So:");
  const auto& calls = found["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]["type"], "function");
  EXPECT_THAT(calls[0]["id"].get<std::string>(), HasSubstr("call-"));
  EXPECT_EQ(calls[0]["function"], Json({{"name", "add"}, {"arguments", R"({"a":2,"b":true})"}}));
  const auto stream = streamed(written);
  EXPECT_EQ(stream["role"], "assistant");
  EXPECT_EQ(stream["content"], "So:");
  EXPECT_EQ(stream["finish_reason"], "tool_calls");
  ASSERT_EQ(stream["tool_calls"].size(), 1u);
  EXPECT_EQ(stream["tool_calls"][0]["function"], calls[0]["function"]);
  // The numbers of calls go on from chunk to chunk (streamed() looks at them).
  const auto two = streamed(
      {{"regex",
        R"(<tool_call>\{"name": "stop", "arguments": \{\}\}</tool_call>\n<tool_call>\{"name": "add", )"
        R"("arguments": \{"a": 1, "b": false\}\}</tool_call>)"}});
  ASSERT_EQ(two["tool_calls"].size(), 2u);
  EXPECT_EQ(two["tool_calls"][1]["function"]["name"], "add");
  // Without tools it is a text.
  auto none = written;
  none["tool_choice"] = "none";
  EXPECT_THAT(choice(none)["message"]["content"].get<std::string>(), HasSubstr("<tool_call>"));
  EXPECT_FALSE(choice(none)["message"].contains("tool_calls"));
}

TEST_F(ToolsOfTheApi, AModelReadsThemAndTheAnswersOfTools) {
  const auto n_read = [&](Json more) {
    const auto answer = chat(std::move(more));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json()["usage"]["prompt_tokens"].get<int64_t>();
  };
  EXPECT_GT(n_read(Json::object()), n_read({{"tool_choice", "none"}}) + 100);
  const Json call{
      {"id", "call-1"}, {"type", "function"}, {"function", {{"name", "add"}, {"arguments", R"({"a": 1})"}}}};
  const Json talk{{{"role", "user"}, {"content", "Hi"}},
                  {{"role", "assistant"}, {"content", nullptr}, {"tool_calls", {call}}},
                  {{"role", "tool"}, {"tool_call_id", "call-1"}, {"content", "3"}}};
  EXPECT_GT(n_read({{"messages", talk}}), n_read(Json::object()) + 20);
}

TEST_F(ToolsOfTheApi, RequiredCallsFollowTheirSchema) {
  for (int seed = 0; seed < 6; ++seed) {
    const auto found =
        choice({{"tool_choice", {{"type", "function"}, {"function", {{"name", "add"}}}}}, {"seed", seed}});
    EXPECT_EQ(found["finish_reason"], "tool_calls");
    EXPECT_EQ(found["message"]["content"], nullptr);
    const auto& function = found["message"]["tool_calls"][0]["function"];
    EXPECT_EQ(function["name"], "add");
    const auto arguments = Json::parse(function["arguments"].get<std::string>());
    EXPECT_TRUE(arguments["a"] == 1 || arguments["a"] == 2 || arguments["a"] == 3);
    EXPECT_TRUE(arguments["b"].is_boolean());
  }
  const auto stream = streamed({{"tool_choice", "required"}});
  EXPECT_EQ(stream["tool_calls"].size(), 1u);
  EXPECT_EQ(stream["content"], "");
  EXPECT_EQ(stream["finish_reason"], "tool_calls");
}

// The first token of the marks of each model is so likely that it is written wherever it may be.
TEST_F(ToolsOfTheApi, ACallThatHasBegunFollowsItsSchema) {
  for (const std::string model : {"tags", "hidden tags", "object", "list", "named"}) {
    SCOPED_TRACE(model);
    for (int seed = 0; seed < 4; ++seed) {
      const Json more{
          {"model", model}, {"seed", seed}, {"logit_bias", {{"98", 100}}}, {"parallel_tool_calls", false}};
      const auto found = choice(more);
      ASSERT_EQ(found["finish_reason"], "tool_calls") << found;
      const auto& calls = found["message"]["tool_calls"];
      ASSERT_EQ(calls.size(), 1u);
      const auto& function = calls[0]["function"];
      const auto arguments = Json::parse(function["arguments"].get<std::string>());
      if (function["name"] == "add") {
        EXPECT_TRUE(arguments["a"] == 1 || arguments["a"] == 2 || arguments["a"] == 3);
        EXPECT_TRUE(arguments["b"].is_boolean());
      } else {
        EXPECT_EQ(function["name"], "stop");
        EXPECT_EQ(arguments, Json::object());
      }
      const auto stream = streamed(more);
      ASSERT_EQ(stream["tool_calls"].size(), 1u);
      EXPECT_EQ(stream["tool_calls"][0]["function"], function);
    }
  }
  for (const std::string model : {"named", "list"}) {
    const auto required =
        choice({{"model", model}, {"tool_choice", "required"}, {"parallel_tool_calls", false}});
    EXPECT_EQ(required["message"]["tool_calls"].size(), 1u) << required;
    EXPECT_EQ(required["message"]["content"], nullptr);
  }
}

// Without a mark, the answer is the one that is given without a form.
TEST_F(ToolsOfTheApi, AnAnswerWithoutACallIsFree) {
  const Json more{{"max_tokens", 40}, {"temperature", 1.5}};
  const auto found = choice(more);
  EXPECT_FALSE(found["message"].contains("tool_calls"));
  EXPECT_THAT(found["message"]["content"].get<std::string>(), ::testing::Not(::testing::IsEmpty()));
  // A schema that is not supported is no error, and leaves the arguments any object.
  const auto odd = choice({{"model", "tags"},
                           {"parallel_tool_calls", false},
                           {"logit_bias", {{"98", 100}, {std::to_string('}' - '!'), 90}}},
                           {"tools", {tool("f", {{"type", "object"}, {"not", {{"type", "null"}}}})}}});
  ASSERT_EQ(odd["finish_reason"], "tool_calls") << odd;
  EXPECT_EQ(odd["message"]["tool_calls"][0]["function"], Json({{"name", "f"}, {"arguments", "{}"}}));
}

// Behind a call that has a form nothing may follow: an output that goes on behind its end has none.
TEST_F(ToolsOfTheApi, AnOutputWithoutAnEndGoesOnBehindACall) {
  const Json only_one{{"type", "object"},
                      {"properties", {{"a", {{"enum", {1}}}}}},
                      {"required", {"a"}},
                      {"additionalProperties", false}};
  const auto endless = chat({{"model", "list"},
                             {"ignore_eos", true},
                             {"parallel_tool_calls", false},
                             {"max_tokens", 100},
                             {"logit_bias", {{"98", 100}}},
                             {"tools", {tool("f", only_one)}}});
  ASSERT_EQ(endless.status, 200) << endless.body;
  EXPECT_EQ(endless.json()["usage"]["completion_tokens"], 100);
  const auto message = endless.json()["choices"][0]["message"];
  EXPECT_FALSE(message.contains("tool_calls"));
  EXPECT_THAT(message["content"].get<std::string>(), HasSubstr("[TOOL_CALLS][TOOL_CALLS]"));
}

TEST_F(ToolsOfTheApi, ResponsesReadCallsAsChatsDo) {
  const Json call{
      {"id", "call-1"}, {"type", "function"}, {"function", {{"name", "add"}, {"arguments", R"({"a":1})"}}}};
  const Json talk{{{"role", "user"}, {"content", "Hi"}},
                  {{"role", "assistant"}, {"content", ""}, {"tool_calls", {call}}},
                  {{"role", "tool"}, {"tool_call_id", "call-1"}, {"name", "add"}, {"content", "3"}}};
  const Json items{
      {{"role", "user"}, {"content", "Hi"}},
      {{"type", "function_call"}, {"call_id", "call-1"}, {"name", "add"}, {"arguments", R"({"a":1})"}},
      {{"type", "function_call_output"}, {"call_id", "call-1"}, {"output", "3"}}};
  HttpClient client(server_.port());
  const auto chat = client.post("/v1/chat/completions",
                                {{"model", "caller"}, {"messages", talk}, {"max_tokens", 8}, {"seed", 3}});
  const auto response = client.post(
      "/v1/responses", {{"model", "caller"}, {"input", items}, {"max_output_tokens", 8}, {"seed", 3}});
  ASSERT_EQ(chat.status, 200) << chat.body;
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.json()["usage"]["input_tokens"], chat.json()["usage"]["prompt_tokens"]);
  EXPECT_EQ(response.json()["output"][0]["content"][0]["text"],
            chat.json()["choices"][0]["message"]["content"]);
}

TEST_F(ToolsOfTheApi, AModelWithTokensForGapsReadsASuffix) {
  HttpClient client(server_.port());
  auto ids = Json::array();
  const Json texts{{"model", "caller"}, {"text", "<fim_prefix>ab <fim_suffix> cd<fim_middle>"}};
  const auto tokens = client.post("/tokenize", texts).json()["tokens"];
  for (const auto& token : tokens) ids.push_back(token["id"]);
  ASSERT_EQ(ids.size(), 9u);
  Json asked{{"model", "caller"}, {"prompt", "ab "}, {"suffix", " cd"}, {"max_tokens", 12}, {"seed", 2}};
  const auto filled = client.post("/v1/completions", asked).json();
  asked.update({{"prompt", ids}, {"suffix", nullptr}});
  const auto expected = client.post("/v1/completions", asked).json();
  EXPECT_EQ(filled["choices"], expected["choices"]);
  EXPECT_EQ(filled["usage"]["prompt_tokens"], 9);
  asked.update({{"suffix", "x"}, {"echo", true}});
  EXPECT_THAT(client.post("/v1/completions", asked).error(), HasSubstr("suffix contradicts echo"));
  const Json other{{"model", "writer"}, {"prompt", "a"}, {"suffix", "b"}};
  const auto refused = client.post("/v1/completions", other);
  EXPECT_EQ(refused.status, 400);
  EXPECT_THAT(refused.error(), HasSubstr("suffix: the model writer fills no gaps"));
}

TEST_F(ToolsOfTheApi, SayWhatIsWrong) {
  const std::vector<std::pair<Json, std::string>> wrong = {
      {{{"tools", 1}}, "tools must be a list"},
      {{{"tools", {{{"type", "search"}}}}}, "type must be function"},
      {{{"tools", {tool("a b", Json::object())}}}, "name must have"},
      {{{"tools", {tool("f", Json::object()), tool("f", Json::object())}}}, "is that of two tools: f"},
      {{{"tools", {tool("f", 1)}}}, "parameters must be a JSON schema"},
      {{{"tool_choice", "some"}}, "tool_choice must be"},
      {{{"tool_choice", {{"type", "function"}, {"function", {{"name", "h"}}}}}}, "is not one of the tools"},
      {{{"tools", nullptr}, {"tool_choice", "required"}}, "needs tools"},
      {{{"tool_choice", "required"}, {"regex", "a"}}, "contradicts"},
      {{{"tool_choice", "required"}, {"tools", {tool("f", {{"type", "object"}, {"not", 1}})}}},
       "'not' is not supported"},
      {{{"model", "writer"}}, "in no form that is known here"}};
  for (const auto& [more, problem] : wrong) {
    const auto answer = chat(more);
    EXPECT_EQ(answer.status, 400) << more;
    EXPECT_THAT(answer.error(), HasSubstr(problem)) << more;
  }
}

}  // namespace
}  // namespace zoo

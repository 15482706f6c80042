// /v1/responses: OpenAI's newer API for conversations, whose state the server keeps.

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "io/json_document.h"
#include "io/sha256.h"
#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"
#include "serving/api/routes.h"
#include "serving/api/texts/chat_call.h"
#include "serving/api/texts/response_answer.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPath = "/v1/responses/";

/// Who may read a response: who sends the same key, also to a server that asks for none.
std::string owner_of(const HttpRequest& request) { return sha256(request.header("authorization")); }

ApiError unknown_response(const std::string& id, const char* key) {
  return {
      404,
      fmt::format("there is no response '{}': the server keeps the newest ones for some time, and each for "
                  "the key with which it was asked for",
                  excerpt(id)),
      key, "response_not_found"};
}

Json read_message(RequestFields& item) {
  auto role = item.required_text("role");
  if (role == "developer") role = "system";
  if (role != "system" && role != "user" && role != "assistant")
    item.fail("role", "must be system, developer, user or assistant");
  return {{"role", role}, {"content", read_content(item, "content", {"input_text", "output_text"})}};
}

/// Adds a call of the assistant to its last message, or as one.
void read_call(RequestFields& item, Json& messages) {
  const auto id = item.required_text("call_id"), name = item.required_text("name"),
             arguments = item.required_text("arguments");
  if (messages.empty() || messages.back()["role"] != "assistant")
    messages.push_back({{"role", "assistant"}, {"content", ""}});
  messages.back()["tool_calls"].push_back(tool_call_json(id, name, arguments));
}

/// What a tool has answered to a call in one of the messages.
Json read_output(RequestFields& item, const Json& messages) {
  const auto id = item.required_text("call_id");
  for (const auto& message : messages) {
    if (!message.contains("tool_calls")) continue;
    for (const auto& call : message["tool_calls"]) {
      if (call["id"] != id) continue;
      return {{"role", "tool"},
              {"tool_call_id", id},
              {"name", call["function"]["name"]},
              {"content", read_content(item, "output", {"input_text"})}};
    }
  }
  item.fail("call_id", fmt::format("is that of no call before it: {}", excerpt(id)));
}

/// Adds the items of `input` to a conversation.
void read_input(RequestFields& fields, Json& messages) {
  const auto& input = fields.required("input");
  if (input.is_string()) {
    messages.push_back({{"role", "user"}, {"content", input}});
    return;
  }
  if (!input.is_array() || input.empty())
    fields.fail("input", "must be a text or a list of at least one item");
  for (const auto& entry : input) {
    RequestFields item(entry, "input");
    const auto type = item.text("type").value_or("message");
    if (type == "message") {
      messages.push_back(read_message(item));
    } else if (type == "function_call") {
      read_call(item, messages);
    } else if (type == "function_call_output") {
      messages.push_back(read_output(item, messages));
    } else {
      item.fail("type", "must be message, function_call or function_call_output");
    }
    item.ignore({"id", "status"});
    item.refuse_others();
  }
}

/// Reads what the output is, and whether it has logprobs.
void read_output_options(RequestFields& fields, const ApiLimits& limits, TextCall& call) {
  auto& options = call.request.options;
  if (options.num_samples != 1) fields.fail("n", "must be 1: a response is one output");
  options.max_new_tokens = fields.integer("max_output_tokens", Limits::whole(1, limits.most_tokens));
  if (const auto* const value = fields.find("text")) {
    RequestFields text(*value, "text");
    if (const auto* const form = text.find("format")) {
      RequestFields format(*form, "text.format");
      read_format(format, ChatApi::responses, call);
    }
    text.refuse_others();
  }
  constexpr size_t most_included = 16;
  for (const auto& included : fields.texts("include", most_included).value_or(std::vector<std::string>())) {
    // Nothing here thinks in secret.
    if (included == "reasoning.encrypted_content") continue;
    if (included != "message.output_text.logprobs")
      fields.fail("include", "may have message.output_text.logprobs");
    call.answer.has_logprobs = true;
  }
  read_tools_and_alternatives(fields, ChatApi::responses, call);
}

/// What the answer repeats of a request.
Json repeated(RequestFields& fields, const GenerationConfig& options) {
  const auto or_else = [&](const char* key, Json otherwise) {
    const auto* const value = fields.find(key);
    return value ? *value : std::move(otherwise);
  };
  auto text = or_else("text", Json::object());
  if (!text.contains("format") || text["format"].is_null()) text["format"] = {{"type", "text"}};
  return {{"instructions", or_else("instructions", nullptr)},
          {"max_output_tokens", or_else("max_output_tokens", nullptr)},
          {"metadata", or_else("metadata", Json::object())},
          {"parallel_tool_calls", or_else("parallel_tool_calls", true)},
          {"previous_response_id", or_else("previous_response_id", nullptr)},
          {"store", or_else("store", true)},
          {"temperature", options.temperature},
          {"text", std::move(text)},
          {"tool_choice", or_else("tool_choice", "auto")},
          {"tools", or_else("tools", Json::array())},
          {"top_p", options.top_p},
          {"truncation", "disabled"}};
}

/// What OpenAI has and this server has not.
void refuse_unsupported(RequestFields& fields) {
  if (fields.flag("background", false)) fields.fail("background", "must be false");
  if (const auto truncation = fields.text("truncation"); truncation && *truncation != "disabled")
    fields.fail("truncation", "must be disabled");
  if (fields.find("conversation")) fields.fail("conversation", "is not supported: use previous_response_id");
  if (const auto* const metadata = fields.find("metadata"); metadata && !metadata->is_object())
    fields.fail("metadata", "must be an object");
}

void respond(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  auto asked = read_text_call(fields, context.service, context.options.limits);
  ResponsePlan response;
  response.owner = owner_of(call.request);
  auto messages = Json::array();
  if (const auto id = fields.text("previous_response_id")) {
    const auto previous = context.responses->find(*id, response.owner);
    if (!previous) throw unknown_response(*id, "previous_response_id");
    messages = parse_ordered_json(previous->messages);
  }
  read_input(fields, messages);
  response.messages = json_text(messages);
  // The instructions of earlier requests are not those of this one.
  if (const auto instructions = fields.text("instructions"); instructions && !instructions->empty())
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", *instructions}});
  read_output_options(fields, context.options.limits, asked);
  if (fields.flag("store", true)) response.store = context.responses;
  refuse_unsupported(fields);
  response.repeated = repeated(fields, asked.request.options);
  fields.refuse_others();
  begin_chat(context, call, std::move(asked), {.list = std::move(messages), .key = "input"},
             [response = std::move(response)](AnswerPlan plan, std::shared_ptr<HttpReply> reply) {
               return response_listener(std::move(plan), response, std::move(reply));
             });
}

void show_response(const ApiContext& context, const ApiCall& call) {
  const auto id = call.request.path.substr(kPath.size());
  auto stored = context.responses->find(id, owner_of(call.request));
  if (!stored) throw unknown_response(id, "");
  call.reply->send({.body = std::move(stored->document)});
}

void delete_response(const ApiContext& context, const ApiCall& call) {
  const auto id = call.request.path.substr(kPath.size());
  if (!context.responses->erase(id, owner_of(call.request))) throw unknown_response(id, "");
  send_json(*call.reply, {{"id", id}, {"object", "response"}, {"deleted", true}});
}

}  // namespace

std::vector<Route> response_routes() {
  const std::string one(kPath);
  return {{.method = "POST", .path = "/v1/responses", .answer = respond},
          {.method = "GET", .path = one, .answer = show_response},
          {.method = "DELETE", .path = one, .answer = delete_response}};
}

}  // namespace zoo

// /v1/completions and /v1/chat/completions.

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "serving/api/api_error.h"
#include "serving/api/completion_answer.h"
#include "serving/api/routes.h"
#include "serving/api/texts/chat_call.h"
#include "serving/api/texts_or_ids.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

CompletionListener completion_answer(AnswerPlan plan, std::shared_ptr<HttpReply> reply) {
  return listener_of(std::make_shared<CompletionAnswer>(std::move(plan), std::move(reply)));
}

// ---- completions

/// Whether `name` is a token, which is added then.
bool add_token(const Tokenizer& tokenizer, const char* name, TokenIds& to) {
  try {
    const auto ids = tokenizer.encode(name);
    if (ids.size() != 1 || tokenizer.label(ids.front()) != name) return false;
    to.push_back(ids.front());
    return true;
  } catch (const DataError&) {  // it lacks these characters
    return false;
  }
}

/// The three tokens between which a model that was trained to fill gaps reads the texts beside a gap
/// (Bavarian et al. 2022), as StarCoder and we name them, or Qwen. Throws ApiError if the vocabulary has
/// none.
TokenIds gap_tokens(const ServedModel& model) {
  for (const auto& names : {std::array{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"},
                            std::array{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}}) {
    TokenIds tokens;
    if (std::ranges::all_of(names,
                            [&](const char* name) { return add_token(model.tokenizer(), name, tokens); }))
      return tokens;
  }
  throw ApiError(400,
                 fmt::format("suffix: the model {} fills no gaps: its vocabulary has no <fim_prefix>, "
                             "<fim_suffix> and <fim_middle>",
                             model.card().id),
                 "suffix");
}

/// Puts prompts and what follows the gap behind them into the order in which a model reads them.
void add_suffix(const ServedModel& model, const std::string& suffix, TextsOrIds& prompts) {
  const auto tokens = gap_tokens(model);
  const auto& tokenizer = model.tokenizer();
  for (const auto& text : prompts.texts) prompts.ids.push_back(tokenizer.encode(text));
  prompts.texts.clear();
  const auto after = tokenizer.encode_continuation(suffix);
  for (auto& ids : prompts.ids) {
    ids.insert(ids.begin(), tokens[0]);
    ids.push_back(tokens[1]);
    ids.insert(ids.end(), after.begin(), after.end());
    ids.push_back(tokens[2]);
  }
}

void complete(const ApiContext& context, const ApiCall& call) {
  const auto& limits = context.options.limits;
  RequestFields fields(call.request.body);
  auto asked = read_text_call(fields, context.service, limits);
  auto& options = asked.request.options;
  asked.request.client = call.request.client;
  auto prompts = read_texts_or_ids(fields, "prompt", static_cast<size_t>(limits.most_prompts));
  const auto n_likeliest = fields.integer("logprobs", Limits::whole(0, kMostAlternatives));
  asked.answer.has_logprobs = n_likeliest.has_value();
  asked.request.n_likeliest = n_likeliest.value_or(0);
  if (!n_likeliest) asked.request.logprobs = TokenLogprobs::none;
  options.max_new_tokens = fields.integer("max_tokens", Limits::whole(0, limits.most_tokens));
  const bool is_echo = fields.flag("echo", false);
  if (!is_echo && options.max_new_tokens == 0) fields.fail("max_tokens", "must be at least 1 without echo");
  const int64_t n = options.num_samples;
  if (const auto best_of = fields.integer("best_of", Limits::whole(1, limits.most_outputs));
      best_of && *best_of != n)
    fields.fail("best_of", "must be n: all outputs are returned");
  if (static_cast<int64_t>(prompts.size()) * n > limits.most_outputs)
    fields.fail("n", fmt::format("asks for more than {} outputs", limits.most_outputs));
  const auto suffix = fields.text("suffix").value_or("");
  if (is_echo && !suffix.empty()) fields.fail("suffix", "contradicts echo: the output fills a gap");
  fields.refuse_others();
  constexpr int64_t usual = 16;
  set_max_tokens(options, options.max_new_tokens.value_or(is_echo ? 0 : usual));
  call.reply->note({.model = asked.answer.name});
  context.service.with_model(
      asked.answer.name,
      [asked, prompts = std::move(prompts), is_echo, suffix,
       reply = call.reply](const std::shared_ptr<ModelWorker>& worker) mutable {
        const auto& model = worker->model();
        model.require(Ability::completions);
        if (is_echo) {
          if (!model.generator()->continues_prompt())
            throw ApiError(400, "this model answers its prompt, so there is no echo", "echo");
          asked.request.echo = asked.answer.has_logprobs ? PromptEcho::text_and_logprobs : PromptEcho::text;
          asked.answer.prompts = prompts.texts;
        }
        if (!suffix.empty()) add_suffix(model, suffix, prompts);
        for (const auto& text : prompts.texts) prompts.ids.push_back(model.generator()->encode(text));
        for (auto& ids : prompts.ids) {
          check_length(model, ids, "prompt");
          asked.request.prompts.emplace_back(std::move(ids));
        }
        begin(worker, std::move(asked), reply, completion_answer);
      },
      sender_of_errors(call.reply));
}

// ---- chat

/// The calls of an assistant's message as templates want them.
Json read_tool_calls(const Json& list, const RequestFields& message) {
  if (!list.is_array()) message.fail("tool_calls", "must be a list");
  auto calls = list;
  for (auto& call : calls) {
    RequestFields fields(call, "messages.tool_calls");
    RequestFields function(fields.required("function"), "messages.tool_calls.function");
    function.required_text("name");
    const auto* const arguments = function.find("arguments");
    if (arguments && arguments->is_string())
      call["function"]["arguments"] = read_arguments(arguments->get<std::string>());
  }
  return calls;
}

Json read_messages(RequestFields& fields) {
  const auto& list = fields.required("messages");
  if (!list.is_array() || list.empty()) fields.fail("messages", "must be a list of at least one message");
  auto messages = Json::array();
  for (const auto& entry : list) {
    RequestFields message(entry, "messages");
    auto role = message.required_text("role");
    if (role == "developer") role = "system";
    if (role != "system" && role != "user" && role != "assistant" && role != "tool")
      message.fail("role", "must be system, user, assistant or tool");
    Json read{{"role", role}};
    const auto* const calls = role == "assistant" ? message.find("tool_calls") : nullptr;
    // Beside calls there may be no content.
    read["content"] =
        calls && !message.find("content") ? Json(nullptr) : Json(read_content(message, "content", {"text"}));
    if (calls) read["tool_calls"] = read_tool_calls(*calls, message);
    if (role == "tool") {
      for (const char* const key : {"tool_call_id", "name"})
        if (const auto text = message.text(key)) read[key] = *text;
    }
    messages.push_back(std::move(read));
    for (const char* const key : {"function_call", "audio"})
      if (message.find(key)) message.fail(key, "is not supported: use tool_calls");
    message.ignore({"name", "refusal", "annotations"});
    message.refuse_others();
  }
  return messages;
}

TextCall read_chat_call(RequestFields& fields, const Service& service, const ApiLimits& limits) {
  auto call = read_text_call(fields, service, limits);
  call.answer.kind = AnswerKind::chat;
  for (const char* const key : {"max_tokens", "max_completion_tokens"}) {
    if (const auto most = fields.integer(key, Limits::whole(1, limits.most_tokens)))
      call.request.options.max_new_tokens = most;
  }
  call.answer.has_logprobs = fields.flag("logprobs", false);
  if (const auto* const value = fields.find("response_format")) {
    RequestFields format(*value, "response_format");
    read_format(format, ChatApi::completions, call);
  }
  read_tools_and_alternatives(fields, ChatApi::completions, call);
  if (const auto* const functions = fields.find("functions"); functions && !functions->empty())
    fields.fail("functions", "is not supported: use tools");
  fields.ignore({"function_call", "modalities"});
  fields.refuse_others();
  return call;
}

void chat(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  auto messages = read_messages(fields);
  auto asked = read_chat_call(fields, context.service, context.options.limits);
  begin_chat(context, call, std::move(asked), {.list = std::move(messages), .key = "messages"},
             completion_answer);
}

}  // namespace

std::vector<Route> text_routes() {
  return {{.method = "POST", .path = "/v1/completions", .answer = complete},
          {.method = "POST", .path = "/v1/chat/completions", .answer = chat}};
}

}  // namespace zoo

// /v1/completions and /v1/chat/completions.

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "io/json_document.h"
#include "serving/api/api_error.h"
#include "serving/api/completion_answer.h"
#include "serving/api/completion_parameters.h"
#include "serving/api/json_form.h"
#include "serving/api/routes.h"
#include "serving/api/texts_or_ids.h"
#include "text/local_time.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostAlternatives = 20;

/// Throws TextTooLongError for a prompt that a model would have to shorten.
void check_length(const ServedModel& model, const TokenIds& prompt, const char* key) {
  require_length(prompt.size(), model.model().generative()->max_length(), key);
}

/// Begins a request whose model is ready, and connects it with its client.
void begin(const std::shared_ptr<ModelWorker>& worker, TextCall call,
           const std::shared_ptr<HttpReply>& reply) {
  auto& [request, plan, has_form] = call;
  plan.seed = request.options.seed;
  plan.n_prompts = request.prompts.size();
  plan.n_samples = static_cast<size_t>(request.options.num_samples);
  plan.model = worker->shared_model();
  const auto answer = std::make_shared<CompletionAnswer>(std::move(plan), reply);
  const auto cancellation = worker->complete(std::move(request), listener_of(answer));
  reply->on_gone([cancellation] { cancellation->request(); });
}

std::function<void(const std::exception_ptr&)> sender_of_errors(const std::shared_ptr<HttpReply>& reply) {
  return [reply](const std::exception_ptr& problem) { reply->send(error_response(as_api_error(problem))); };
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
        begin(worker, std::move(asked), reply);
      },
      sender_of_errors(call.reply));
}

// ---- chat

/// A text, or the texts of its parts.
std::string read_content(RequestFields& message) {
  const auto& value = message.required("content");
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) message.fail("content", "must be a text or a list of parts");
  std::string text;
  for (const auto& part : value) {
    RequestFields fields(part, "messages.content");
    if (fields.required_text("type") != "text")
      fields.fail("type", "must be text: pictures and sounds are not read here");
    text += fields.required_text("text");
  }
  return text;
}

/// The calls of an assistant's message as templates want them: arguments are an object, which OpenAI sends as
/// its text.
Json read_tool_calls(const Json& list, const RequestFields& message) {
  if (!list.is_array()) message.fail("tool_calls", "must be a list");
  auto calls = list;
  for (auto& call : calls) {
    RequestFields fields(call, "messages.tool_calls");
    RequestFields function(fields.required("function"), "messages.tool_calls.function");
    function.required_text("name");
    const auto* const arguments = function.find("arguments");
    if (!arguments || !arguments->is_string()) continue;
    try {
      auto parsed = parse_ordered_json(arguments->get<std::string>());
      if (parsed.is_object()) call["function"]["arguments"] = std::move(parsed);
    } catch (const DataError&) {
      // What a model wrote need not be JSON: the template gets the text.
    }
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
    read["content"] = calls && !message.find("content") ? Json(nullptr) : Json(read_content(message));
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

/// Sets the form that response_format asks for.
void read_response_format(RequestFields& fields, TextCall& call) {
  const auto* const value = fields.find("response_format");
  if (!value) return;
  RequestFields format(*value, "response_format");
  const auto type = format.required_text("type");
  auto& options = call.request.options;
  if (type != "text") {
    if (call.has_form)
      fields.fail("response_format", "contradicts regex or json_schema: an output has one form");
    options.regex = options.json_schema = "";
  }
  if (type == "json_object") {
    options.regex = any_json_object();
  } else if (type == "json_schema") {
    RequestFields schema(format.required("json_schema"), "response_format.json_schema");
    options.json_schema = json_text(schema.required("schema"));
    schema.ignore({"name", "description", "strict"});
    schema.refuse_others();
  } else if (type != "text") {
    format.fail("type", "must be text, json_object or json_schema");
  }
  format.refuse_others();
}

TextCall read_chat_call(RequestFields& fields, const Service& service, const ApiLimits& limits) {
  auto call = read_text_call(fields, service, limits);
  call.answer.kind = AnswerKind::chat;
  auto& options = call.request.options;
  if (const auto most = fields.integer("max_completion_tokens", Limits::whole(1, limits.most_tokens)))
    options.max_new_tokens = most;
  if (options.max_new_tokens == 0) fields.fail("max_tokens", "must be at least 1");
  const bool wants_logprobs = fields.flag("logprobs", false);
  const auto n_top = fields.integer("top_logprobs", Limits::whole(0, kMostAlternatives));
  if (n_top && !wants_logprobs) fields.fail("top_logprobs", "needs logprobs: true");
  call.answer.has_logprobs = wants_logprobs;
  call.request.n_likeliest = n_top.value_or(0);
  read_response_format(fields, call);
  call.answer.tools = read_tools(fields);
  if (call.answer.tools.choice == ToolChoice::required && (call.has_form || fields.find("response_format")))
    fields.fail("tool_choice",
                "contradicts response_format, regex and json_schema: a call has a form of its own");
  if (const auto* const functions = fields.find("functions"); functions && !functions->empty())
    fields.fail("functions", "is not supported: use tools");
  fields.ignore({"function_call", "modalities"});
  fields.refuse_others();
  return call;
}

/// The tokens of a conversation. Throws ApiError if there are too many.
TokenIds tokens_of_chat(const ServedModel& model, const Json& messages, const ToolOffer& offer,
                        const std::string& beginning) {
  Conversation conversation{{"messages", messages}, {"add_generation_prompt", true}};
  if (offer.choice != ToolChoice::none) conversation["tools"] = offer.tools;
  auto ids = model.chat_template()->encode(model.tokenizer(), conversation, local_time());
  if (!beginning.empty()) {
    const auto more = model.tokenizer().encode_continuation(beginning);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  check_length(model, ids, "messages");
  return ids;
}

/// Finds out how the model writes calls, and what an answer must be. Returns what the answer begins with.
std::string prepare_calls(const ServedModel& model, TextCall& call) {
  auto& answer = call.answer;
  if (answer.tools.choice == ToolChoice::none) return "";
  answer.calls = call_format(*model.chat_template());
  if (!answer.calls) {
    throw ApiError(400,
                   fmt::format("the chat template of {} writes calls of tools in no form that is known here, "
                               "which are those of Qwen and Hermes, Llama 3 and Mistral",
                               model.card().id),
                   "tools");
  }
  if (answer.tools.choice != ToolChoice::required) return "";
  auto [beginning, schema] = required_call(answer.tools, *answer.calls);
  call.request.options.regex = "";
  call.request.options.json_schema = std::move(schema);
  return beginning;
}

void chat(const ApiContext& context, const ApiCall& call) {
  const auto& limits = context.options.limits;
  RequestFields fields(call.request.body);
  auto messages = read_messages(fields);
  auto asked = read_chat_call(fields, context.service, limits);
  asked.request.client = call.request.client;
  call.reply->note({.model = asked.answer.name});
  context.service.with_model(
      asked.answer.name,
      [asked, messages = std::move(messages), most_tokens = limits.most_tokens,
       reply = call.reply](const std::shared_ptr<ModelWorker>& worker) mutable {
        const auto& model = worker->model();
        if (!model.chat_template())
          throw ApiError(
              400, fmt::format("the model {} has no chat template: use /v1/completions", model.card().id));
        const auto beginning = prepare_calls(model, asked);
        auto prompt = tokens_of_chat(model, messages, asked.answer.tools, beginning);
        auto& options = asked.request.options;
        const int64_t room = model.model().generative()->max_length() - std::ssize(prompt);
        set_max_tokens(options, options.max_new_tokens.value_or(std::clamp<int64_t>(room, 1, most_tokens)));
        asked.request.prompts.emplace_back(std::move(prompt));
        begin(worker, std::move(asked), reply);
      },
      sender_of_errors(call.reply));
}

}  // namespace

std::vector<Route> text_routes() {
  return {{.method = "POST", .path = "/v1/completions", .answer = complete},
          {.method = "POST", .path = "/v1/chat/completions", .answer = chat}};
}

}  // namespace zoo

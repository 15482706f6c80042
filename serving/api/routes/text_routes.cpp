// /v1/completions and /v1/chat/completions.

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "data/text/chats/local_time.h"
#include "data/text/tokenizer_file.h"
#include "serving/api/api_error.h"
#include "serving/api/completion_answer.h"
#include "serving/api/completion_parameters.h"
#include "serving/api/json_form.h"
#include "serving/api/routes/routes.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostAlternatives = 20;

/// Throws ApiError for a prompt that a model would have to shorten.
void check_length(const ServedModel& model, const TokenIds& prompt, const char* key) {
  const int64_t most = model.model().generative()->max_length();
  if (std::ssize(prompt) <= most) return;
  throw ApiError(
      400, fmt::format("{} has {} tokens, and the model reads {}: shorten it", key, prompt.size(), most), key,
      "context_length_exceeded");
}

/// Begins a request whose model is ready, and connects it with its client.
void begin(const std::shared_ptr<ModelWorker>& worker, CompletionRequest request, AnswerPlan plan,
           const std::shared_ptr<HttpReply>& reply) {
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

struct Prompts {
  std::vector<std::string> texts;  // or
  std::vector<TokenIds> ids;
  size_t size() const { return texts.size() + ids.size(); }
};

bool are_ids(const Json& list) {
  return list.is_array() && !list.empty() &&
         std::ranges::all_of(list, [](const Json& id) { return id.is_number_integer(); });
}

Prompts read_prompts(RequestFields& fields, const ApiLimits& limits) {
  const auto& value = fields.required("prompt");
  Prompts prompts;
  if (value.is_string()) {
    prompts.texts.push_back(value.get<std::string>());
  } else if (are_ids(value)) {
    prompts.ids.push_back(value.get<TokenIds>());
  } else if (value.is_array() && !value.empty() && std::ranges::all_of(value, are_ids)) {
    prompts.ids = value.get<std::vector<TokenIds>>();
  } else if (value.is_array() && !value.empty() &&
             std::ranges::all_of(value, [](const Json& text) { return text.is_string(); })) {
    prompts.texts = value.get<std::vector<std::string>>();
  } else {
    fields.fail("prompt", "must be a text, a list of texts, a list of token ids, or a list of such lists");
  }
  if (std::ssize(prompts.texts) + std::ssize(prompts.ids) > limits.most_prompts) {
    fields.fail("prompt",
                fmt::format("has {} prompts, and may have {}", prompts.size(), limits.most_prompts));
  }
  return prompts;
}

void complete(const ApiContext& context, const ApiCall& call) {
  const auto& limits = context.options.limits;
  RequestFields fields(call.request.body);
  auto parameters = read_text_parameters(fields, limits);
  auto prompts = read_prompts(fields, limits);
  parameters.answer.n_likeliest = fields.integer("logprobs", 0, kMostAlternatives);
  const bool is_echo = fields.flag("echo", false);
  if (!is_echo && parameters.max_tokens == 0) fields.fail("max_tokens", "must be at least 1 without echo");
  const int64_t n = parameters.n.value_or(1);
  if (const auto best_of = fields.integer("best_of", 1, limits.most_outputs); best_of && *best_of != n)
    fields.fail("best_of", "must be n: all outputs are returned");
  if (static_cast<int64_t>(prompts.size()) * n > limits.most_outputs)
    fields.fail("n", fmt::format("asks for more than {} outputs", limits.most_outputs));
  if (const auto suffix = fields.text("suffix"); suffix && !suffix->empty())
    fields.fail("suffix", "is not supported");
  fields.refuse_others();
  if (is_echo && !parameters.max_tokens) parameters.max_tokens = 0;
  call.reply->note({.model = parameters.answer.model});
  context.service.with_model(
      parameters.answer.model,
      [parameters, prompts = std::move(prompts), is_echo,
       reply = call.reply](const std::shared_ptr<ModelWorker>& worker) {
        const auto& model = worker->model();
        model.require(Ability::completions);
        auto request = request_of(parameters, model);
        AnswerPlan plan{.options = parameters.answer};
        if (is_echo) {
          if (!model.generator()->continues_prompt())
            throw ApiError(400, "this model answers its prompt, so there is no echo", "echo");
          request.echo = parameters.answer.n_likeliest ? PromptEcho::text_and_logprobs : PromptEcho::text;
          plan.prompts = prompts.texts;
        }
        request.prompts = prompts.ids;
        for (const auto& text : prompts.texts) request.prompts.push_back(model.generator()->encode(text));
        for (const auto& prompt : request.prompts) check_length(model, prompt, "prompt");
        begin(worker, std::move(request), std::move(plan), reply);
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

Json read_messages(RequestFields& fields) {
  const auto& list = fields.required("messages");
  if (!list.is_array() || list.empty()) fields.fail("messages", "must be a list of at least one message");
  auto messages = Json::array();
  for (const auto& entry : list) {
    RequestFields message(entry, "messages");
    auto role = message.required_text("role");
    if (role == "developer") role = "system";
    if (role != "system" && role != "user" && role != "assistant")
      message.fail("role", "must be system, user or assistant");
    messages.push_back({{"role", role}, {"content", read_content(message)}});
    message.ignore({"name", "refusal"});
    message.refuse_others();
  }
  return messages;
}

/// Sets the form that response_format asks for.
void read_response_format(RequestFields& fields, TextParameters& parameters) {
  const auto* const value = fields.find("response_format");
  if (!value) return;
  RequestFields format(*value, "response_format");
  const auto type = format.required_text("type");
  if (type == "json_object") {
    parameters.regex = any_json_object();
  } else if (type == "json_schema") {
    RequestFields schema(format.required("json_schema"), "response_format.json_schema");
    parameters.json_schema = schema.required("schema").dump();
    schema.ignore({"name", "description", "strict"});
    schema.refuse_others();
  } else if (type != "text") {
    format.fail("type", "must be text, json_object or json_schema");
  }
  format.refuse_others();
}

TextParameters read_chat_parameters(RequestFields& fields, const ApiLimits& limits) {
  auto parameters = read_text_parameters(fields, limits);
  if (const auto most = fields.integer("max_completion_tokens", 1, limits.most_tokens))
    parameters.max_tokens = most;
  if (parameters.max_tokens == 0) fields.fail("max_tokens", "must be at least 1");
  const bool wants_logprobs = fields.flag("logprobs", false);
  const auto n_top = fields.integer("top_logprobs", 0, kMostAlternatives);
  if (n_top && !wants_logprobs) fields.fail("top_logprobs", "needs logprobs: true");
  if (wants_logprobs) parameters.answer.n_likeliest = n_top.value_or(0);
  read_response_format(fields, parameters);
  for (const char* const key : {"tools", "functions"}) {
    const auto* const value = fields.find(key);
    if (value && !value->empty()) fields.fail(key, "is not supported: ask for a JSON schema instead");
  }
  fields.ignore({"tool_choice", "parallel_tool_calls", "modalities"});
  fields.refuse_others();
  return parameters;
}

/// The tokens of a conversation. Throws ApiError if there are too many.
TokenIds tokens_of_chat(const ServedModel& model, const Json& messages) {
  const Conversation conversation{{"messages", messages}, {"add_generation_prompt", true}};
  auto ids = model.chat_template()->encode(model.tokenizer(), conversation, local_time());
  check_length(model, ids, "messages");
  return ids;
}

void chat(const ApiContext& context, const ApiCall& call) {
  const auto& limits = context.options.limits;
  RequestFields fields(call.request.body);
  auto messages = read_messages(fields);
  auto parameters = read_chat_parameters(fields, limits);
  call.reply->note({.model = parameters.answer.model});
  context.service.with_model(
      parameters.answer.model,
      [parameters, messages = std::move(messages), most_tokens = limits.most_tokens,
       reply = call.reply](const std::shared_ptr<ModelWorker>& worker) mutable {
        const auto& model = worker->model();
        if (!model.chat_template())
          throw ApiError(
              400, fmt::format("the model {} has no chat template: use /v1/completions", model.card().id));
        auto prompt = tokens_of_chat(model, messages);
        if (!parameters.max_tokens) {
          const int64_t room = model.model().generative()->max_length() - std::ssize(prompt);
          parameters.max_tokens = std::clamp<int64_t>(room, 1, most_tokens);
        }
        auto request = request_of(parameters, model);
        request.prompts.push_back(std::move(prompt));
        begin(worker, std::move(request), {.kind = AnswerKind::chat, .options = parameters.answer}, reply);
      },
      sender_of_errors(call.reply));
}

}  // namespace

std::vector<Route> text_routes() {
  return {{.method = "POST", .path = "/v1/completions", .answer = complete},
          {.method = "POST", .path = "/v1/chat/completions", .answer = chat}};
}

}  // namespace zoo

#include "serving/api/texts/chat_call.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "io/json_document.h"
#include "serving/api/api_error.h"
#include "serving/api/json_form.h"
#include "serving/api/texts_or_ids.h"
#include "text/local_time.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

void read_schema(RequestFields& fields, GenerationConfig& options) {
  options.json_schema = json_text(fields.required("schema"));
  fields.ignore({"name", "description", "strict"});
  fields.refuse_others();
}

/// The tokens of a conversation. Throws ApiError if there are too many.
TokenIds tokens_of_chat(const ServedModel& model, const ChatMessages& messages, const ToolOffer& offer,
                        const std::string& beginning) {
  Conversation conversation{{"messages", messages.list}, {"add_generation_prompt", true}};
  if (offer.choice != ToolChoice::none) conversation["tools"] = offer.tools;
  auto ids = model.chat_template()->encode(model.tokenizer(), conversation, local_time());
  if (!beginning.empty()) {
    const auto more = model.tokenizer().encode_continuation(beginning);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  check_length(model, ids, messages.key);
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
  auto& options = call.request.options;
  auto& parts = call.request.parts;
  parts.shown = shown_marks(model.tokenizer(), *answer.calls);
  if (answer.tools.choice == ToolChoice::required) {
    auto required = required_call(answer.tools, *answer.calls);
    options.regex = "";
    options.json_schema = std::move(required.schema);
    parts.form = std::move(required.form);
    return std::move(required.beginning);
  }
  // Where the whole output has a form, or goes on behind its end, calls have none.
  const bool is_free = options.regex.empty() && options.json_schema.empty() && !options.ignore_eos;
  if (is_free) parts.form = form_of_calls(answer.tools, *answer.calls);
  return "";
}

}  // namespace

void begin(const std::shared_ptr<ModelWorker>& worker, TextCall call, const std::shared_ptr<HttpReply>& reply,
           const AnswerMaker& answer) {
  auto& [request, plan, has_form] = call;
  plan.seed = request.options.seed;
  plan.n_prompts = request.prompts.size();
  plan.n_samples = static_cast<size_t>(request.options.num_samples);
  plan.model = worker->shared_model();
  const auto cancellation = worker->complete(std::move(request), answer(std::move(plan), reply));
  reply->on_gone([cancellation] { cancellation->request(); });
}

void check_length(const ServedModel& model, const TokenIds& prompt, const char* key) {
  require_length(prompt.size(), model.model().generative()->max_length(), key);
}

std::string read_content(RequestFields& message, const std::string& key,
                         std::initializer_list<std::string_view> types) {
  const auto& value = message.required(key);
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) message.fail(key, "must be a text or a list of parts");
  std::string text;
  for (const auto& part : value) {
    RequestFields fields(part, message.place() + key);
    if (std::ranges::find(types, fields.required_text("type")) == types.end()) {
      fields.fail("type",
                  fmt::format("must be {}: pictures and sounds are not read here", fmt::join(types, " or ")));
    }
    text += fields.required_text("text");
  }
  return text;
}

void read_format(RequestFields& format, ChatApi api, TextCall& call) {
  const auto type = format.required_text("type");
  auto& options = call.request.options;
  if (type != "text") {
    if (call.has_form) format.fail("type", "contradicts regex or json_schema: an output has one form");
    options.regex = options.json_schema = "";
    call.has_form = true;
  }
  if (type == "json_object") {
    options.regex = any_json_object();
  } else if (type == "json_schema" && api == ChatApi::responses) {
    read_schema(format, options);
  } else if (type == "json_schema") {
    RequestFields schema(format.required("json_schema"), format.place() + "json_schema");
    read_schema(schema, options);
  } else if (type != "text") {
    format.fail("type", "must be text, json_object or json_schema");
  }
  format.refuse_others();
}

void read_tools_and_alternatives(RequestFields& fields, ChatApi api, TextCall& call) {
  const auto n_top = fields.integer("top_logprobs", Limits::whole(0, kMostAlternatives));
  if (n_top && !call.answer.has_logprobs) {
    fields.fail("top_logprobs", api == ChatApi::responses ? "needs message.output_text.logprobs in include"
                                                          : "needs logprobs: true");
  }
  call.request.n_likeliest = n_top.value_or(0);
  if (!call.answer.has_logprobs) call.request.logprobs = TokenLogprobs::none;
  call.answer.tools = read_tools(fields, api);
  if (call.answer.tools.choice == ToolChoice::required && call.has_form)
    fields.fail("tool_choice", "contradicts the form of the output: a call has a form of its own");
}

void begin_chat(const ApiContext& context, const ApiCall& call, TextCall asked, ChatMessages messages,
                AnswerMaker answer) {
  asked.request.client = call.request.client;
  call.reply->note({.model = asked.answer.name});
  const auto name = asked.answer.name;
  context.service.with_model(
      name,
      [asked = std::move(asked), messages = std::move(messages), answer = std::move(answer),
       most_tokens = context.options.limits.most_tokens,
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
        begin(worker, std::move(asked), reply, answer);
      },
      sender_of_errors(call.reply));
}

}  // namespace zoo

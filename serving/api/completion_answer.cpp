#include "serving/api/completion_answer.h"

#include <utility>

#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"
#include "serving/api/token_json.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of_end(OutputEnd end) {
  return end == OutputEnd::length || end == OutputEnd::time ? "length" : "stop";
}

/// `first`: the number of the first one in its answer.
Json calls_json(const std::vector<ToolCall>& calls, size_t first) {
  auto list = Json::array();
  for (const auto& [name, arguments] : calls) {
    list.push_back({{"index", first++},
                    {"id", new_id("call-")},
                    {"type", "function"},
                    {"function", {{"name", name}, {"arguments", arguments}}}});
  }
  return list;
}

Json usage_json(const CompletionUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.output_tokens},
          {"total_tokens", usage.prompt_tokens + usage.output_tokens}};
}

}  // namespace

CompletionAnswer::CompletionAnswer(AnswerPlan plan, std::shared_ptr<HttpReply> reply)
    : plan_(std::move(plan)),
      reply_(std::move(reply)),
      id_(new_id(is_chat() ? "chatcmpl-" : "cmpl-")),
      created_(seconds_now()),
      choices_(plan_.n_prompts * plan_.n_samples) {
  if (!plan_.calls) return;
  for (auto& choice : choices_) choice.reader.emplace(*plan_.calls, plan_.tools);
}

/// What all documents and events have.
Json CompletionAnswer::frame(bool is_chunk) const {
  const char* const object = !is_chat() ? "text_completion"
                             : is_chunk ? "chat.completion.chunk"
                                        : "chat.completion";
  return {{"id", id_}, {"object", object}, {"created", created_}, {"model", plan_.name}};
}

Json CompletionAnswer::logprobs(const std::vector<CompletionToken>& tokens, Choice& choice) const {
  if (!plan_.has_logprobs) return nullptr;
  return is_chat() ? chat_logprobs(tokens, plan_.model->tokenizer())
                   : completion_logprobs(tokens, plan_.model->tokenizer(), choice.offset);
}

Json CompletionAnswer::whole_choice(size_t index) {
  auto& choice = choices_[index];
  Json result{{"index", index}};
  if (is_chat()) {
    const bool has_text = choice.calls.empty() || !choice.text.empty();
    result["message"] = {{"role", "assistant"},
                         {"content", has_text ? Json(choice.text) : Json(nullptr)},
                         {"refusal", nullptr}};
    if (!choice.calls.empty()) {
      auto calls = calls_json(choice.calls, 0);
      for (auto& call : calls) call.erase("index");
      result["message"]["tool_calls"] = std::move(calls);
    }
  } else {
    result["text"] = choice.text;
  }
  result["logprobs"] = logprobs(choice.tokens, choice);
  result["finish_reason"] = choice.calls.empty() ? name_of_end(choice.end) : "tool_calls";
  return result;
}

Json CompletionAnswer::chunk_choice(size_t index, const CompletionPiece& piece,
                                    const std::vector<ToolCall>& calls) {
  auto& choice = choices_[index];
  Json result{{"index", index}};
  if (is_chat()) {
    auto delta = Json::object();
    if (!std::exchange(choice.has_begun, true)) delta["role"] = "assistant";
    if (calls.empty() || !piece.text.empty()) delta["content"] = piece.text;
    if (!calls.empty()) delta["tool_calls"] = calls_json(calls, choice.calls.size() - calls.size());
    result["delta"] = std::move(delta);
  } else {
    result["text"] = piece.text;
  }
  result["logprobs"] = piece.tokens.empty() ? Json(nullptr) : logprobs(piece.tokens, choice);
  result["finish_reason"] = nullptr;
  if (piece.end) result["finish_reason"] = choice.calls.empty() ? name_of_end(*piece.end) : "tool_calls";
  return result;
}

void CompletionAnswer::begin_stream() {
  if (std::exchange(has_begun_, true)) return;
  reply_->begin({.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-cache"}}});
}

void CompletionAnswer::send_event(const Json& event) { reply_->write("data: " + as_text(event) + "\n\n"); }

void CompletionAnswer::send_chunk(Json choices, const Json& usage) {
  const bool is_first = !has_begun_;
  begin_stream();
  auto event = frame(true);
  event["choices"] = std::move(choices);
  if (plan_.includes_usage) event["usage"] = usage;
  if (is_first) event["zoo"] = {{"seed", plan_.seed}};
  send_event(event);
}

void CompletionAnswer::add(CompletionPiece piece) {
  const size_t index = piece.prompt * plan_.n_samples + piece.sample;
  if (piece.is_echo && !plan_.prompts.empty()) piece.text = plan_.prompts[piece.prompt];
  auto& choice = choices_.at(index);
  std::vector<ToolCall> calls;
  if (choice.reader) {
    auto found =
        choice.reader->read(piece.text, piece.end ? CallReader::Rest::is_none : CallReader::Rest::follows);
    piece.text = std::move(found.text);
    calls = std::move(found.calls);
    choice.calls.insert(choice.calls.end(), calls.begin(), calls.end());
  }
  if (is_stream()) return send_chunk(Json::array({chunk_choice(index, piece, calls)}), nullptr);
  choice.text += piece.text;
  for (auto& token : piece.tokens) choice.tokens.push_back(std::move(token));
  if (piece.end) choice.end = *piece.end;
}

void CompletionAnswer::note(const CompletionUsage& usage) {
  reply_->note({.model = plan_.name, .tokens_in = usage.prompt_tokens, .tokens_out = usage.output_tokens});
}

void CompletionAnswer::end(const CompletionUsage& usage) {
  note(usage);
  if (is_stream()) {
    if (plan_.includes_usage) send_chunk(Json::array(), usage_json(usage));
    begin_stream();
    reply_->write("data: [DONE]\n\n");
    return reply_->finish();
  }
  auto document = frame(false);
  auto choices = Json::array();
  for (size_t i = 0; i < choices_.size(); ++i) choices.push_back(whole_choice(i));
  document["choices"] = std::move(choices);
  document["usage"] = usage_json(usage);
  document["zoo"] = {{"seed", plan_.seed}};
  send_json(*reply_, document);
}

void CompletionAnswer::fail(const std::exception_ptr& problem) {
  note({});
  const auto error = as_api_error(problem);
  if (!has_begun_) return reply_->send(error_response(error));
  send_event(error_json(error));
  reply_->finish();
}

}  // namespace zoo

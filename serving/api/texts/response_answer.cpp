#include "serving/api/texts/response_answer.h"

#include <utility>

#include <fmt/format.h>

#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"
#include "serving/api/token_json.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

/// Sends an answer from the pieces of its text. The events are those that OpenAI documents, in their order.
class ResponseAnswer {
 public:
  ResponseAnswer(AnswerPlan plan, ResponsePlan response, std::shared_ptr<HttpReply> reply)
      : plan_(std::move(plan)), response_(std::move(response)), reply_(std::move(reply)) {
    if (plan_.calls) reader_.emplace(*plan_.calls, plan_.tools);
  }

  void add(CompletionPiece piece);
  void end(const CompletionUsage& usage);
  void fail(const std::exception_ptr& problem);

 private:
  bool is_stream() const { return plan_.delivery == Delivery::stream; }
  void begin();
  void send_event(const char* type, Json members);
  void send_last(const char* type, const Json& document);
  Json document(const char* status) const;
  Json item_place() const { return {{"item_id", item_["id"]}, {"output_index", output_.size()}}; }
  Json part_place() const;
  void open_item(Json item);
  void close_item();
  void open_message();
  void add_text(const std::string& text);
  void close_message(const char* status);
  void add_call(const ToolCall& call);
  void keep(const Json& document) const;

  AnswerPlan plan_;
  ResponsePlan response_;
  std::shared_ptr<HttpReply> reply_;
  std::string id_ = new_id("resp_");
  int64_t created_ = seconds_now();
  int64_t n_events_ = 0;
  bool has_begun_ = false;
  std::optional<CallReader> reader_;
  std::vector<CompletionToken> tokens_;  // whose text does not belong to an item yet
  OutputEnd end_ = OutputEnd::length;
  Json output_ = Json::array();  // items that are complete
  Json item_ = nullptr;          // the one that is being written
  std::string text_;             // of all messages
  Json calls_ = Json::array();   // as templates read them
};

Json text_part(const std::string& text, Json logprobs) {
  return {{"type", "output_text"},
          {"text", text},
          {"annotations", Json::array()},
          {"logprobs", std::move(logprobs)}};
}

Json usage_json(const CompletionUsage& usage) {
  return {{"input_tokens", usage.prompt_tokens},
          {"input_tokens_details", {{"cached_tokens", 0}}},
          {"output_tokens", usage.output_tokens},
          {"output_tokens_details", {{"reasoning_tokens", 0}}},
          {"total_tokens", usage.prompt_tokens + usage.output_tokens}};
}

void ResponseAnswer::send_event(const char* type, Json members) {
  if (!is_stream()) return;
  Json event{{"type", type}, {"sequence_number", n_events_++}};
  event.update(members);
  reply_->write(fmt::format("event: {}\ndata: {}\n\n", type, as_text(event)));
}

void ResponseAnswer::send_last(const char* type, const Json& document) {
  send_event(type, {{"response", document}});
  reply_->finish();
}

Json ResponseAnswer::document(const char* status) const {
  Json result{
      {"id", id_},        {"object", "response"},          {"created_at", created_}, {"status", status},
      {"error", nullptr}, {"incomplete_details", nullptr}, {"model", plan_.name},    {"output", output_},
      {"usage", nullptr}, {"zoo", {{"seed", plan_.seed}}}};
  result.update(response_.repeated);
  return result;
}

void ResponseAnswer::begin() {
  if (std::exchange(has_begun_, true) || !is_stream()) return;
  reply_->begin({.content_type = "text/event-stream", .headers = {{"Cache-Control", "no-cache"}}});
  for (const char* const type : {"response.created", "response.in_progress"})
    send_event(type, {{"response", document("in_progress")}});
}

void ResponseAnswer::open_item(Json item) {
  item_ = std::move(item);
  item_["status"] = "in_progress";
  send_event("response.output_item.added", {{"output_index", output_.size()}, {"item", item_}});
}

void ResponseAnswer::close_item() {
  send_event("response.output_item.done", {{"output_index", output_.size()}, {"item", item_}});
  output_.push_back(std::exchange(item_, nullptr));
}

Json ResponseAnswer::part_place() const {
  auto place = item_place();
  place["content_index"] = 0;
  return place;
}

void ResponseAnswer::open_message() {
  open_item({{"id", new_id("msg_")}, {"type", "message"}, {"role", "assistant"}, {"content", Json::array()}});
  item_["content"].push_back(text_part("", Json::array()));
  auto event = part_place();
  event["part"] = item_["content"][0];
  send_event("response.content_part.added", std::move(event));
}

void ResponseAnswer::add_text(const std::string& text) {
  if (item_.is_null()) open_message();
  auto logprobs = Json::array();
  if (plan_.has_logprobs) logprobs = chat_logprobs(tokens_, plan_.model->tokenizer())["content"];
  tokens_.clear();
  auto& part = item_["content"][0];
  part["text"].get_ref<std::string&>() += text;
  part["logprobs"].insert(part["logprobs"].end(), logprobs.begin(), logprobs.end());
  text_ += text;
  auto event = part_place();
  event.update({{"delta", text}, {"logprobs", std::move(logprobs)}});
  send_event("response.output_text.delta", std::move(event));
}

void ResponseAnswer::close_message(const char* status) {
  if (item_.is_null()) return;
  const auto& part = item_["content"][0];
  auto event = part_place();
  event.update({{"text", part["text"]}, {"logprobs", part["logprobs"]}});
  send_event("response.output_text.done", std::move(event));
  event = part_place();
  event["part"] = part;
  send_event("response.content_part.done", std::move(event));
  item_["status"] = status;
  close_item();
}

void ResponseAnswer::add_call(const ToolCall& call) {
  const auto id = new_id("call_");
  open_item({{"id", new_id("fc_")},
             {"type", "function_call"},
             {"call_id", id},
             {"name", call.name},
             {"arguments", ""}});
  auto event = item_place();
  event["delta"] = call.arguments;
  send_event("response.function_call_arguments.delta", std::move(event));
  event = item_place();
  event.update({{"name", call.name}, {"arguments", call.arguments}});
  send_event("response.function_call_arguments.done", std::move(event));
  item_.update({{"arguments", call.arguments}, {"status", "completed"}});
  close_item();
  calls_.push_back(tool_call_json(id, call.name, call.arguments));
}

void ResponseAnswer::add(CompletionPiece piece) {
  begin();
  CallReader::Found found{.text = std::move(piece.text)};
  if (reader_)
    found = reader_->read(found.text, piece.end ? CallReader::Rest::is_none : CallReader::Rest::follows);
  for (auto& token : piece.tokens) tokens_.push_back(std::move(token));
  if (!found.text.empty()) add_text(found.text);
  if (!found.calls.empty()) {
    tokens_.clear();
    close_message("completed");
    for (const auto& call : found.calls) add_call(call);
  }
  if (piece.end) end_ = *piece.end;
}

/// The conversation goes on with the answer.
void ResponseAnswer::keep(const Json& document) const {
  if (!response_.store) return;
  Json answer{{"role", "assistant"}, {"content", text_}};
  if (!calls_.empty()) answer["tool_calls"] = calls_;
  auto messages = response_.messages;
  messages.pop_back();
  response_.store->put(
      id_, response_.owner,
      {.document = as_text(document) + "\n", .messages = messages + "," + as_text(answer) + "]"});
}

void ResponseAnswer::end(const CompletionUsage& usage) {
  reply_->note({.model = plan_.name, .tokens_in = usage.prompt_tokens, .tokens_out = usage.output_tokens});
  begin();
  const bool is_cut = end_ == OutputEnd::length || end_ == OutputEnd::time;
  const char* const status = is_cut ? "incomplete" : "completed";
  if (output_.empty() && item_.is_null()) open_message();
  close_message(status);
  auto whole = document(status);
  if (is_cut) whole["incomplete_details"] = {{"reason", "max_output_tokens"}};
  whole["usage"] = usage_json(usage);
  keep(whole);
  if (!is_stream()) return send_json(*reply_, whole);
  send_last(is_cut ? "response.incomplete" : "response.completed", whole);
}

void ResponseAnswer::fail(const std::exception_ptr& problem) {
  reply_->note({.model = plan_.name});
  const auto error = as_api_error(problem);
  if (!is_stream() || !has_begun_) return reply_->send(error_response(error));
  auto failed = document("failed");
  constexpr int first_of_server = 500;
  failed["error"] = {{"code", error.status() >= first_of_server ? "server_error" : "invalid_prompt"},
                     {"message", error_json(error)["error"]["message"]}};
  send_last("response.failed", failed);
}

}  // namespace

CompletionListener response_listener(AnswerPlan answer, ResponsePlan response,
                                     std::shared_ptr<HttpReply> reply) {
  return listener_of(
      std::make_shared<ResponseAnswer>(std::move(answer), std::move(response), std::move(reply)));
}

}  // namespace zoo

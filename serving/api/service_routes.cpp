// The routes of the page, the models, the health and the metrics, and of the tokens of texts.

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "io/json_document.h"
#include "pages/playground/playground_page.h"
#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"
#include "serving/api/request_fields.h"
#include "serving/api/request_options.h"
#include "serving/api/routes.h"
#include "serving/api/token_json.h"
#include "serving/service_error.h"

namespace zoo::embedded {
extern const char openapi[];
}

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

Json model_json(const ModelCard& card) {
  auto can = Json::array();
  for (const auto ability : card.can) can.push_back(name_of(ability));
  Json about{{"task", card.task},
             {"family", card.family},
             {"parameters", card.parameters},
             {"max_length", card.max_length ? Json(*card.max_length) : Json(nullptr)},
             {"can", std::move(can)}};
  if (card.max_seconds) about["max_seconds"] = *card.max_seconds;
  return {{"id", card.id},
          {"object", "model"},
          {"created", card.created},
          {"owned_by", "transformer-zoo"},
          {"zoo", std::move(about)}};
}

void show_page(const ApiContext&, const ApiCall& call) {
  const auto& page = playground_page();
  call.reply->send({.content_type = "text/html; charset=utf-8",
                    .body = page.html,
                    .headers = {{"Content-Security-Policy", page.content_security_policy},
                                {"X-Content-Type-Options", "nosniff"},
                                {"Referrer-Policy", "no-referrer"},
                                {"Cache-Control", "no-cache"}}});
}

void show_health(const ApiContext&, const ApiCall& call) { send_json(*call.reply, {{"status", "ok"}}); }

void show_metrics(const ApiContext& context, const ApiCall& call) {
  call.reply->send({.content_type = "text/plain; version=0.0.4; charset=utf-8",
                    .body = context.metrics->text(context.service)});
}

void show_description(const ApiContext& context, const ApiCall& call) {
  call.reply->send(context.description);
}

void list_models(const ApiContext& context, const ApiCall& call) {
  auto list = Json::array();
  for (const auto& model : context.service.models()) list.push_back(model_json(model.card));
  send_json(*call.reply, {{"object", "list"}, {"data", std::move(list)}});
}

void show_model(const ApiContext& context, const ApiCall& call) {
  const auto id = call.request.path.substr(std::string_view("/v1/models/").size());
  send_json(*call.reply, model_json(context.service.card(id)));
}

/// The tokens of `text` with the characters that they stand for, if the vocabulary knows them.
Json tokens_json(const Tokenizer& tokenizer, const std::string& text) {
  auto list = Json::array();
  const auto add = [&](int64_t id, const Json& begin, const Json& end) {
    list.push_back({{"id", id}, {"text", name_of_token(tokenizer, id)}, {"start", begin}, {"end", end}});
  };
  try {
    for (const auto& token : tokenizer.encode_with_places(text)) add(token.id, token.begin, token.end);
  } catch (const DataError&) {
    list = Json::array();
    for (const int64_t id : tokenizer.encode(text)) add(id, nullptr, nullptr);
  }
  return list;
}

/// The tokens that a model reads of a prompt: also those that its vocabulary puts before it.
void tokenize(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  auto text = fields.required_text("text");
  fields.refuse_others();
  call.reply->note({.model = model});
  context.service.with_model(
      model,
      [model, text = std::move(text), reply = call.reply](const std::shared_ptr<ModelWorker>& worker) {
        const auto& served = worker->model();
        if (!served.card().max_length)
          throw ServiceError(ServiceProblem::unable,
                             fmt::format("the model {} reads no texts", served.card().id));
        const auto& tokenizer = served.tokenizer();
        auto list = Json::array();
        const auto frame = tokenizer.frame();
        if (frame && served.generator() && served.generator()->continues_prompt()) {
          for (const int64_t id : frame->before)
            list.push_back({{"id", id}, {"text", name_of_token(tokenizer, id)}, {"start", 0}, {"end", 0}});
        }
        for (auto& token : tokens_json(tokenizer, text)) list.push_back(std::move(token));
        reply->note({.model = model, .tokens_in = std::ssize(list)});
        send_json(*reply, {{"tokens", std::move(list)}});
      },
      sender_of_errors(call.reply));
}

}  // namespace

// Options of generation are described once, with GenerationConfig.
HttpResponse describe_api(const ApiOptions& options) {
  auto document = parse_ordered_json(embedded::openapi);
  const auto generation = schemas_of_generation_options(options.limits);
  for (const char* const request : {"CompletionRequest", "ChatRequest", "ResponseRequest"})
    document["components"]["schemas"][request]["properties"].update(generation);
  if (!options.api_key) document.erase("security");
  return json_response(document);
}

std::vector<Route> service_routes() {
  return {{.method = "GET", .path = "/", .answer = show_page},
          {.method = "GET", .path = "/health", .answer = show_health},
          {.method = "GET", .path = "/metrics", .answer = show_metrics},
          {.method = "GET", .path = "/openapi.json", .answer = show_description},
          {.method = "GET", .path = "/v1/models", .answer = list_models},
          {.method = "GET", .path = "/v1/models/", .answer = show_model},
          {.method = "POST", .path = "/tokenize", .answer = tokenize}};
}

}  // namespace zoo

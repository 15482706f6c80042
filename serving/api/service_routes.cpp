// The routes of the page, the models, the health and the metrics.

#include <utility>

#include <fmt/format.h>

#include "io/json_document.h"
#include "pages/playground/playground_page.h"
#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"
#include "serving/api/request_options.h"
#include "serving/api/routes.h"

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
             {"weights", name_of(card.weights)},
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
          {.method = "GET", .path = "/v1/models/", .answer = show_model}};
}

}  // namespace zoo

#pragma once
// A route of the API, and what its function gets.

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "generation/prompt.h"
#include "serving/api/api_limits.h"
#include "serving/api/response_store.h"
#include "serving/api/server_metrics.h"
#include "serving/http/http_server.h"
#include "serving/service.h"

namespace zoo {

/// Which values of the header Host are answered. A page of a stranger can make a browser resolve a name of
/// its own to 127.0.0.1 (DNS rebinding), but the browser still sends that name.
enum class HostNames { any, of_this_machine };

struct ApiOptions {
  std::optional<std::string> api_key = {};  // every route but / and /health needs it
  HostNames hosts = HostNames::of_this_machine;
  ApiLimits limits = {};
};

/// A request that a route answers.
struct ApiCall {
  HttpRequest request;
  std::shared_ptr<HttpReply> reply;
};

/// What routes work with.
struct ApiContext {
  Service& service;
  ApiOptions options;
  HttpResponse description = {};  // of the API, for OpenAPI
  std::shared_ptr<ServerMetrics> metrics = std::make_shared<ServerMetrics>();
  std::shared_ptr<ResponseStore> responses = std::make_shared<ResponseStore>(options.limits);
};

/// What the body of a POST is. Browsers ask before they send JSON for another site's page, and get no
/// permission. They send forms (multipart/form-data) without asking, so a page of another site is refused
/// then.
enum class RequestBody { json, form };

/// Answers one path. Errors that `answer` throws are sent.
struct Route {
  std::string method;
  std::string path;  // ends with "/" if a name follows
  std::function<void(const ApiContext& context, const ApiCall& call)> answer;
  RequestBody body = RequestBody::json;
};

/// An answer with the tokens that the log counts.
struct CountedAnswer {
  nlohmann::ordered_json document = {};
  std::optional<HttpResponse> response = {};  // sent in the place of the document
  int64_t tokens_in = 0, tokens_out = 0;
};
/// A request is refused because a text is too long; the log counts the tokens that were read.
class RefusedTexts : public TextTooLongError {
 public:
  RefusedTexts(const std::string& message, int64_t n_tokens)
      : TextTooLongError(message), n_tokens_(n_tokens) {}
  int64_t n_tokens() const { return n_tokens_; }

 private:
  int64_t n_tokens_;
};
/// An answer, or nothing as long as there is more to do.
using ModelAnswer = std::optional<CountedAnswer>;
/// What answers call usage: {"prompt_tokens", "total_tokens"} of a request that only reads.
nlohmann::ordered_json usage_of_reading(int64_t n_tokens);
/// How many texts are worked on between two steps of a model, if they are not long (kTokensAtOnce).
inline constexpr size_t kTextsAtOnce = 8;

/// Answers with what was thrown.
std::function<void(const std::exception_ptr&)> sender_of_errors(const std::shared_ptr<HttpReply>& reply);

/// Does `work` with a model on the compute thread, and sends its answer. `work` is called until it has one;
/// between two calls other requests have their turns. Drops it if the client goes away.
void answer_with_model(const ApiContext& context, const ApiCall& call, const std::string& model,
                       Ability ability, std::function<ModelAnswer(const ServedModel& model)> work);

}  // namespace zoo

#pragma once
// The API over HTTP: OpenAI's for texts and vectors, and routes of our own for what else models can do.

#include <memory>
#include <string>
#include <vector>

#include "serving/api/route.h"
#include "serving/http/http_server.h"
#include "serving/service.h"

namespace zoo {

/// The API of a service. Its handlers refer to it.
class Api {
 public:
  Api(Service& service, ApiOptions options);

  /// Their log counts requests for /metrics.
  HttpHandlers handlers();

 private:
  const Route& route_of(const HttpRequest& request) const;
  std::string name_of_route(const std::string& path) const;
  void check_head(const HttpRequest& head) const;
  void handle(HttpRequest request, const std::shared_ptr<HttpReply>& reply) const;

  ApiContext context_;
  std::string key_digest_;  // empty: no key is needed
  std::vector<Route> routes_;
};

}  // namespace zoo

#include "serving/api/api.h"

#include <algorithm>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "io/sha256.h"
#include "serving/api/api_error.h"
#include "serving/api/routes.h"
#include "serving/http/form.h"
#include "tokenizers/unicode/lowercase.h"

namespace zoo {
namespace {

/// Takes the same time wherever the first difference is.
bool same_digests(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]));
  return difference == 0;
}

bool matches(const Route& route, std::string_view path) {
  if (route.path.size() > 1 && route.path.ends_with('/'))
    return path.starts_with(route.path) && path.size() > route.path.size();
  return path == route.path;
}

/// Whether a Host header names this machine, with or without a port. Names have no case.
bool is_this_machine(std::string_view host) {
  const auto lower = ascii_lower(host);
  for (const std::string_view name : {"localhost", "127.0.0.1", "[::1]"}) {
    if (!lower.starts_with(name)) continue;
    const auto rest = std::string_view(lower).substr(name.size());
    if (rest.empty() || (rest.front() == ':' && rest.find_first_not_of("0123456789", 1) == rest.npos))
      return true;
  }
  return false;
}

bool is_open_to_all(std::string_view path) { return path == "/" || path == "/health"; }

std::string method_for(const HttpRequest& request) {
  return request.method == "HEAD" ? "GET" : request.method;
}

/// Whether a media type is application/json in any case, with or without parameters such as charset (RFC
/// 9110).
bool is_json(std::string_view media_type) {
  media_type = media_type.substr(0, media_type.find(';'));
  while (media_type.ends_with(' ') || media_type.ends_with('\t')) media_type.remove_suffix(1);
  return lowercase(media_type) == "application/json";
}

/// Whether a page of another site makes a browser send this. Browsers say where a POST comes from, and no
/// page can change it. A proxy may have changed Host; then Sec-Fetch-Site tells whether the page is its own.
bool is_of_another_site(const HttpRequest& head) {
  const auto origin = ascii_lower(head.header("origin"));
  if (origin.empty()) return false;  // no browser
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (origin.starts_with(scheme) && origin.substr(scheme.size()) == ascii_lower(head.header("host")))
      return false;
  }
  return head.header("sec-fetch-site") != "same-origin";
}

void check_body(const HttpRequest& head, RequestBody body) {
  const auto type = head.header("content-type");
  if (body == RequestBody::json) {
    if (!is_json(type)) throw ApiError(415, "send JSON with the header Content-Type: application/json");
    return;
  }
  if (!is_form(type)) throw ApiError(415, "send a form with the header Content-Type: multipart/form-data");
  if (is_of_another_site(head)) {
    throw ApiError(403, fmt::format("a page of '{}' asks, which is another site than this server",
                                    excerpt(head.header("origin"))));
  }
}

}  // namespace

Api::Api(Service& service, ApiOptions options) : context_{.service = service, .options = std::move(options)} {
  context_.description = describe_api(context_.options);
  if (context_.options.api_key) key_digest_ = sha256(*context_.options.api_key);
  for (auto* const make :
       {text_routes, response_routes, vector_routes, audio_routes, prediction_routes, attention_routes,
        cause_routes, slice_routes, fold_routes, tokenizer_routes, service_routes}) {
    for (auto& route : make()) routes_.push_back(std::move(route));
  }
}

const Route& Api::route_of(const HttpRequest& request) const {
  std::string others;
  for (const auto& route : routes_) {
    if (!matches(route, request.path)) continue;
    if (route.method == method_for(request)) return route;
    others += (others.empty() ? "" : ", ") + route.method;
  }
  if (others.empty())
    throw ApiError(404, fmt::format("there is nothing at {}: see /openapi.json", excerpt(request.path)));
  throw ApiError(405, fmt::format("{} is not for {}: use {}", excerpt(request.method), request.path, others))
      .allowing(others);
}

std::string Api::name_of_route(const std::string& path) const {
  const auto found = std::ranges::find_if(routes_, [&](const Route& route) { return matches(route, path); });
  return found == routes_.end() ? "other" : found->path;
}

void Api::check_head(const HttpRequest& head) const {
  if (context_.options.hosts == HostNames::of_this_machine) {
    const auto host = head.header("host");
    if (!is_this_machine(host)) {
      throw ApiError(
          403, fmt::format("the host '{}' is not this machine: use 127.0.0.1 or localhost", excerpt(host)));
    }
  }
  if (!key_digest_.empty() && !is_open_to_all(head.path)) {
    const auto sent = head.header("authorization");
    constexpr std::string_view scheme = "bearer ";
    const bool has_key = ascii_lower(sent.substr(0, scheme.size())) == scheme;
    const auto key = has_key ? sent.substr(scheme.size()) : std::string_view();
    if (!same_digests(sha256(key), key_digest_))
      throw ApiError(401, "this server wants its key: send the header Authorization: Bearer KEY");
  }
  const auto& route = route_of(head);
  if (head.method == "POST") check_body(head, route.body);
}

void Api::handle(HttpRequest request, const std::shared_ptr<HttpReply>& reply) const {
  try {
    const auto& route = route_of(request);
    route.answer(context_, {.request = std::move(request), .reply = reply});
  } catch (...) {
    reply->send(error_response(as_api_error(std::current_exception())));
  }
}

HttpHandlers Api::handlers() {
  return {
      .check_head = [this](const HttpRequest& head) -> std::optional<HttpResponse> {
        try {
          check_head(head);
          return std::nullopt;
        } catch (...) {
          return error_response(as_api_error(std::current_exception()));
        }
      },
      .handle = [this](HttpRequest request,
                       const std::shared_ptr<HttpReply>& reply) { handle(std::move(request), reply); },
      .problem =
          [](int status, std::string_view message) {
            return error_response(ApiError(status, std::string(message)));
          },
      .log =
          [this](const AccessRecord& record) { context_.metrics->add(name_of_route(record.path), record); }};
}

}  // namespace zoo

#pragma once
// Heads of HTTP/1.1 as text. For connection.cpp alone, because Beast takes long to compile.

#include <string>
#include <string_view>

#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "base/text.h"
#include "serving/http/http_message.h"

namespace zoo {

/// Whether the client may send another request on the same connection.
enum class AfterAnswer { keep_alive, close };

namespace detail {

using Message = boost::beast::http::response<boost::beast::http::string_body>;

inline std::string_view as_view(boost::beast::string_view text) { return {text.data(), text.size()}; }

inline Message message_of(const HttpResponse& response, AfterAnswer after) {
  namespace http = boost::beast::http;
  Message message(static_cast<http::status>(response.status), 11);
  message.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) message.set(name, value);
  message.keep_alive(after == AfterAnswer::keep_alive);
  return message;
}

inline std::string text_of(const Message& message) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", message.result_int(), as_view(message.reason()));
  for (const auto& field : message)
    text += fmt::format("{}: {}\r\n", as_view(field.name_string()), as_view(field.value()));
  return text + "\r\n";
}

}  // namespace detail

/// The request of a head that Beast has read, without its body.
inline HttpRequest read_head(const boost::beast::http::request<boost::beast::http::string_body>& message) {
  HttpRequest request;
  request.method = detail::as_view(message.method_string());
  const auto target = detail::as_view(message.target());
  request.path = target.substr(0, target.find_first_of("?#"));
  for (const auto& field : message) {
    auto& value = request.headers[ascii_lower(detail::as_view(field.name_string()))];
    if (!value.empty()) value += ", ";
    value += detail::as_view(field.value());
  }
  return request;
}

/// The head of an answer with its whole body, without the body.
inline std::string head_of_answer(const HttpResponse& response, AfterAnswer after) {
  auto message = detail::message_of(response, after);
  message.content_length(response.body.size());
  return detail::text_of(message);
}

/// The head of an answer whose body comes in chunks.
inline std::string head_of_stream(const HttpResponse& response, AfterAnswer after) {
  auto message = detail::message_of(response, after);
  message.chunked(true);
  return detail::text_of(message);
}

}  // namespace zoo

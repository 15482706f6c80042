#pragma once
// Answers in JSON.

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "io/json_document.h"
#include "serving/http/http_server.h"

namespace zoo {

/// One line; bytes that are not UTF-8 become U+FFFD.
inline std::string as_text(const nlohmann::ordered_json& document) { return shown_json(document); }

inline HttpResponse json_response(const nlohmann::ordered_json& document) {
  return {.body = as_text(document) + "\n"};
}

/// A random id, which no other answer has and nobody can guess: 128 bits in hexadecimal digits after
/// `prefix`.
std::string new_id(std::string_view prefix);

/// UNIX time.
int64_t seconds_now();

inline void send_json(HttpReply& reply, const nlohmann::ordered_json& document) {
  reply.send(json_response(document));
}

}  // namespace zoo

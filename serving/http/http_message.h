#pragma once
// Requests and answers of HTTP, without a network.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zoo {

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // of the target, as it was sent, without the query: "/v1/models"
  std::map<std::string, std::string> headers = {};  // names in lower case
  std::string body = {};
  std::string client = {};  // the address from which it came

  /// The value of a header, "" if there is none. `name` in lower case.
  std::string_view header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
  }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // further ones
};

/// What the log says of a request beside what the server knows.
struct AccessNote {
  std::string model = {};
  int64_t tokens_in = 0, tokens_out = 0;
};

/// A request that was answered, or whose client went away.
struct AccessRecord {
  std::string method, path;
  int status = 0;  // 499: the client went away before there was an answer
  double milliseconds = 0;
  AccessNote note = {};
};

}  // namespace zoo

// Requests of the server's API: a line with method and path, then the body. Forms: a line with the header
// Content-Type, then the body.

#include <algorithm>
#include <future>
#include <memory>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "serving/api/api.h"
#include "serving/http/form.h"
#include "serving/service.h"
#include "tests/fuzz/targets.h"
#include "tests/serving/small_runs.h"
#include "tests/support/small_recordings.h"
#include "tokenizers/subwords/specification.h"

namespace zoo::fuzz {
namespace {

/// Keeps the answer to one request.
class KeptReply final : public HttpReply {
 public:
  void send(HttpResponse response) override { answer_.set_value(std::move(response)); }
  void begin(HttpResponse response) override { begun_ = std::move(response); }
  void write(std::string part) override { begun_.body += part; }
  void finish() override { answer_.set_value(std::move(begun_)); }
  void on_gone(std::function<void()>) override {}
  void note(AccessNote) override {}

  HttpResponse wait() { return answer_.get_future().get(); }

 private:
  HttpResponse begun_;
  std::promise<HttpResponse> answer_;
};

/// A service of small models. It has threads, so each process that reads requests makes its own.
class FuzzedApi {
 public:
  explicit FuzzedApi(const testing::SmallRuns& runs) {
    ServiceOptions options;
    for (const char* const name : {"writer", "translator", "filler", "classifier", "listener"})
      options.models.push_back({.id = name, .path = runs.dir() / name});
    options.limits.most_time = std::chrono::seconds(1);
    service_ = std::make_unique<Service>(std::move(options));
    ApiOptions limited;
    limited.limits.most_tokens = 50;
    limited.limits.most_outputs = 8;
    api_ = std::make_unique<Api>(*service_, limited);
    handlers_ = api_->handlers();
  }

  HttpResponse answer(const std::string& input) {
    const size_t end_of_line = std::min(input.find('\n'), input.size());
    const auto line = input.substr(0, end_of_line);
    HttpRequest request{.method = line.substr(0, line.find(' ')), .path = {}};
    if (line.find(' ') != line.npos) request.path = line.substr(line.find(' ') + 1);
    request.headers = {{"host", "localhost"}, {"content-type", "application/json"}};
    if (auto refusal = handlers_.check_head(request)) return *refusal;
    if (end_of_line < input.size()) request.body = input.substr(end_of_line + 1);
    const auto reply = std::make_shared<KeptReply>();
    handlers_.handle(std::move(request), reply);
    return reply->wait();
  }

 private:
  std::unique_ptr<Service> service_;
  std::unique_ptr<Api> api_;
  HttpHandlers handlers_;
};

/// An answer is a JSON document, or events of such; a server's own failure is a finding.
void check_answer(const HttpResponse& response) {
  if (response.status >= 500) throw std::runtime_error("status 500: " + response.body);
  const auto body = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false);
  if (response.content_type == "application/json" && body.is_discarded())
    throw std::runtime_error("the answer is not JSON");
  if (response.status == 200) return;
  if (!body.contains("error")) throw std::runtime_error("the answer is no error");
  throw DataError(body["error"]["message"].get<std::string>());
}

/// Reads a form. Each part stands where it should: between the headers and a boundary.
void read_fuzzed_form(const std::string& input) {
  const size_t end_of_line = std::min(input.find('\n'), input.size());
  const auto type = input.substr(0, end_of_line),
             body = input.substr(std::min(end_of_line + 1, input.size()));
  const bool is_declared = is_form(type);
  const std::string_view whole = body;
  const char* end = whole.data();  // of the part before
  for (const auto& part : read_form(body, type)) {
    const auto& content = part.content;
    const bool is_within =
        content.data() > end && content.data() + content.size() < whole.data() + whole.size();
    if (!is_within) throw std::logic_error("a part is not within its body");
    end = content.data() + content.size();
    const std::string_view before(whole.data(), static_cast<size_t>(content.data() - whole.data()));
    const std::string_view after = whole.substr(static_cast<size_t>(end - whole.data()));
    if (!before.ends_with("\r\n\r\n") || !after.starts_with("\r\n--"))
      throw std::logic_error("a part does not stand between headers and a boundary");
    if (part.name.empty()) throw std::logic_error("a part has no name");
  }
  if (!is_declared) throw DataError("another type");
}

Seeds forms() {
  const std::string file = "RIFF\r\n--\r\n--xyz\r\n\x01\x7F";
  return {
      "multipart/form-data; boundary=xyzw\n--xyzw\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n"
      "listener\r\n--xyzw\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22b.wav\"\r\n"
      "Content-Type: audio/wav\r\n\r\n" +
          file + "\r\n--xyzw--\r\n",
      "Multipart/Form-Data ; charset=utf-8; boundary=\"a b'(),/:=?c\"\n--a b'(),/:=?c\r\n"
      "content-disposition:form-data;name=\"x\";filename*=utf-8''a\r\nContent-Transfer-Encoding: binary\r\n"
      "X-More: 1\r\n\r\n\r\n--a b'(),/:=?c--"};
}

Seeds requests() {
  return {
      R"(POST /v1/completions
{"model": "writer", "prompt": ["abc", "d"], "max_tokens": 5, "priority": -1, "temperature": 0.5, "top_p": 0.9, "n": 2, "seed": 3,
 "logprobs": 2, "echo": true, "stop": ["ab"], "logit_bias": {"3": 1.5}, "presence_penalty": 0.1})",
      R"(POST /v1/completions
{"model": "writer", "prompt": [1, 2, 3], "max_tokens": 9, "stream": true, "stream_options": {"include_usage": true},
 "regex": "[ab]+", "top_k": 3, "min_p": 0.01, "typical_p": 0.9, "repetition_penalty": 1.1, "min_tokens": 2})",
      R"(POST /v1/completions
{"model": "translator", "prompt": "abc", "json_schema": {"type": "object", "properties": {"a": {"type": "integer"}}}})",
      R"(POST /v1/chat/completions
{"model": "writer", "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": [{"type": "text",
 "text": "b"}]}], "max_completion_tokens": 5, "logprobs": true, "top_logprobs": 3, "response_format": {"type":
 "json_schema", "json_schema": {"name": "x", "schema": {"type": "string", "enum": ["ab", "cd"]}}}})",
      R"(POST /v1/embeddings
{"model": "writer", "input": ["abc", "d"], "encoding_format": "base64", "dimensions": 24, "normalize": false})",
      R"(POST /predict
{"model": "classifier", "texts": ["abc", "cab"], "top": 2})",
      R"(POST /predict
{"model": "classifier", "images": ["data:image/png;base64,iVBORw0KGgo="], "pairs": [["a", "b"]]})",
      R"(POST /predict
{"model": "listener", "recordings": ["data:audio/wav;base64,)" +
          to_base64(testing::wav(testing::tone(400, 200, 8000), 8000)) + R"("]})",
      R"(POST /fill
{"model": "filler", "text": "a<mask>c <mask>", "top": 3})",
      R"(POST /translate
{"model": "translator", "texts": ["abc", "b"], "beam": 2, "alignment": true, "max_tokens": 5})",
      R"(POST /attention
{"model": "translator", "text": "abc", "target": "cba"})",
      R"(POST /tokenize
{"model": "writer", "text": "abc"})",
      "GET /v1/models/writer\n",
      "GET /metrics\n"};
}

}  // namespace

std::vector<Target> request_targets() {
  const auto runs = std::make_shared<testing::SmallRuns>();
  runs->writer();
  runs->translator();
  runs->filler();
  runs->classifier();
  runs->listener();
  const auto api = std::make_shared<std::unique_ptr<FuzzedApi>>();
  return {{"request", "requests to the API of a server", mutate_request,
           [runs, api](const std::string& input) {
             if (!*api) *api = std::make_unique<FuzzedApi>(*runs);
             check_answer((*api)->answer(input));
           },
           requests()},
          {"form", "a form with files, as browsers send it", mutate_bytes, read_fuzzed_form, forms()}};
}

}  // namespace zoo::fuzz

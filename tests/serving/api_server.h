#pragma once
// The API of small models over real sockets.

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "serving/api/api.h"
#include "serving/http/http_server.h"
#include "serving/service.h"
#include "tests/serving/http_client.h"
#include "tests/serving/small_runs.h"

namespace zoo::testing {

/// A server of small models on a free port.
class ApiServer {
 public:
  explicit ApiServer(Service& service, ApiOptions options = {}, HttpLimits limits = {})
      : api_(service, std::move(options)), server_({.port = 0, .limits = limits}, handlers()) {
    thread_ = std::thread([this] { server_.run(); });
  }
  ~ApiServer() {
    server_.stop();
    thread_.join();
  }

  uint16_t port() const { return server_.port(); }
  HttpServer& http() { return server_; }
  std::vector<AccessRecord> log() const {
    const std::scoped_lock lock(mutex_);
    return log_;
  }

 private:
  HttpHandlers handlers() {
    auto handlers = api_.handlers();
    handlers.log = [this, count = handlers.log](const AccessRecord& record) {
      count(record);
      const std::scoped_lock lock(mutex_);
      log_.push_back(record);
    };
    return handlers;
  }

  Api api_;
  mutable std::mutex mutex_;
  std::vector<AccessRecord> log_;
  HttpServer server_;
  std::thread thread_;
};

class ApiTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    runs_ = std::make_unique<SmallRuns>();
    ServiceOptions options;
    for (const auto& path : {runs_->writer(), runs_->translator(), runs_->filler(), runs_->classifier()})
      options.models.push_back({.id = path.filename().string(), .path = path});
    service_ = std::make_unique<Service>(std::move(options));
  }
  static void TearDownTestSuite() {
    service_.reset();
    runs_.reset();
  }

  static nlohmann::json completion(nlohmann::json more = nlohmann::json::object()) {
    nlohmann::json body{{"model", "writer"}, {"prompt", "abc"}, {"max_tokens", 8}, {"seed", 4}};
    body.update(more);
    return body;
  }
  Answer complete(nlohmann::json more) const {
    return HttpClient(server_.port()).post("/v1/completions", completion(std::move(more)));
  }
  nlohmann::json answer(nlohmann::json more) const {
    const auto answer = complete(std::move(more));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  }
  std::string text(nlohmann::json more) const { return answer(std::move(more))["choices"][0]["text"]; }

  static constexpr const char* kNoEnd =
      R"({"28": -100})";  // as logit_bias: no output of "writer" ends by itself

  static inline std::unique_ptr<SmallRuns> runs_;
  static inline std::unique_ptr<Service> service_;
  ApiServer server_{*service_};
};

/// The JSON of a stream's events; "[DONE]" at its end.
inline std::vector<nlohmann::json> events(const std::string& body) {
  std::vector<nlohmann::json> result;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    EXPECT_EQ(body.substr(at, 6), "data: ");
    const auto data = body.substr(at + 6, end - at - 6);
    result.push_back(data == "[DONE]" ? nlohmann::json(data) : nlohmann::json::parse(data));
    at = end + 2;
  }
  return result;
}

}  // namespace zoo::testing

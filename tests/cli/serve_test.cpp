// zoo serve as a process: signals, refusals, what it writes.

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/support.h"
#include "tests/serving/http_client.h"
#include "tests/serving/small_runs.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
using testing::HttpClient;
using testing::run_zoo;
using testing::SmallRuns;
using testing::ZooProcess;

class ServeCommand : public ::testing::Test {
 protected:
  ServeCommand() { runs_.writer(); }

  static uint16_t port_of(ZooProcess& server) {
    const auto& out = server.wait_for_output("\n");
    const size_t at = out.rfind(':');
    EXPECT_THAT(out, HasSubstr("serving at http://127.0.0.1:"));
    return at == out.npos ? 0 : static_cast<uint16_t>(std::stoi(out.substr(at + 1)));
  }
  static std::string long_request() {
    // No end token.
    return R"({"model": "writer", "prompt": "abc", "max_tokens": 300, "stream": true, "logit_bias": {"28": -100}})";
  }

  SmallRuns runs_;
};

TEST_F(ServeCommand, NamesOfModelsAreThePartsOfTheirPathsThatTellThemApart) {
  for (const char* const copy : {"x/gpt", "y/gpt", "z/other"}) {
    std::filesystem::create_directories((runs_.dir() / copy).parent_path());
    std::filesystem::copy(runs_.dir() / "writer", runs_.dir() / copy,
                          std::filesystem::copy_options::recursive);
  }
  ZooProcess server(runs_.dir(), "serve x/gpt y/gpt/ z/other other=writer --port 0");
  HttpClient client(port_of(server));
  std::vector<std::string> names;
  const auto listed = client.get("/v1/models").json();
  for (const auto& model : listed["data"]) names.push_back(model["id"]);
  EXPECT_THAT(names, ::testing::ElementsAre("x/gpt", "y/gpt", "z/other", "other"));
  EXPECT_EQ(client.get("/v1/models/y/gpt").json()["id"], "y/gpt");
  server.kill(SIGTERM);
}

TEST_F(ServeCommand, ASignalLosesNoRequestThatWasAccepted) {
  ZooProcess server(runs_.dir(), "serve writer --port 0");
  const auto port = port_of(server);
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 16; ++i) {
    clients.push_back(std::make_unique<HttpClient>(port));
    clients.back()->begin_post("/v1/completions", long_request());
  }
  // Each has begun to get its text.
  for (const auto& client : clients) EXPECT_THAT(client->read_until("data: "), HasSubstr("200 OK"));
  server.kill(SIGTERM);
  for (const auto& client : clients) {
    EXPECT_THAT(client->read_until("0\r\n\r\n"), HasSubstr("data: [DONE]"));
    client->close();
  }
  const auto outcome = server.finish();
  EXPECT_EQ(outcome.code, 0);
  std::istringstream lines(outcome.err);
  int n_requests = 0;
  for (std::string line; std::getline(lines, line); ++n_requests) {
    const auto entry = Json::parse(line);
    EXPECT_EQ(entry["path"], "/v1/completions");
    EXPECT_EQ(entry["status"], 200);
    EXPECT_EQ(entry["model"], "writer");
    EXPECT_EQ(entry["tokens_in"], 3);
    EXPECT_EQ(entry["tokens_out"], 300);
  }
  EXPECT_EQ(n_requests, 16);
  EXPECT_THAT(outcome.err, Not(HasSubstr("abc")));
}

TEST_F(ServeCommand, ASecondSignalEndsItAtOnce) {
  ZooProcess server(runs_.dir(), "serve writer --port 0 --max-tokens 100000000 --quiet");
  HttpClient client(port_of(server));
  client.begin_post("/v1/completions",
                    R"({"model": "writer", "prompt": "abc", "max_tokens": 100000000, "stream": true,
                        "logit_bias": {"28": -100}})");
  EXPECT_THAT(client.read_until("data: "), HasSubstr("200 OK"));
  server.kill(SIGTERM);
  // The first signal has arrived once new requests are refused.
  while (HttpClient(port_of(server)).get("/health").status != 503) std::this_thread::yield();
  server.kill(SIGINT);
  EXPECT_EQ(server.finish().code, 130);
}

TEST_F(ServeCommand, StartsAgainAfterItWasKilled) {
  uint16_t port = 0;
  {
    ZooProcess server(runs_.dir(), "serve writer --port 0");
    port = port_of(server);
    HttpClient client(port);
    client.begin_post("/v1/completions", long_request());
    client.read_until("data: ");
    server.kill(SIGKILL);
    EXPECT_EQ(server.finish().code, -SIGKILL);
  }
  ZooProcess server(runs_.dir(), fmt::format("serve writer --port {}", port));
  EXPECT_EQ(port_of(server), port);
  EXPECT_EQ(HttpClient(port).get("/health").status, 200);
}

TEST_F(ServeCommand, WantsAKeyWhereOthersCanReachIt) {
  const auto refused = run_zoo(runs_.dir(), "serve writer --port 0 --host 0.0.0.0");
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(
      refused.err,
      "zoo: --host 0.0.0.0: other machines can reach this address, so add --api-key KEY (or the variable "
      "ZOO_API_KEY)\n");
  const testing::ScopedEnvironment key("ZOO_API_KEY", "secret");
  ZooProcess server(runs_.dir(), "serve writer --port 0 --host 0.0.0.0");
  const auto out = server.wait_for_output("\n");
  HttpClient client(static_cast<uint16_t>(std::stoi(out.substr(out.rfind(':') + 1))));
  EXPECT_EQ(client.get("/v1/models").status, 401);
  EXPECT_EQ(client.get("/v1/models", "Authorization: Bearer secret\r\n").status, 200);
}

TEST_F(ServeCommand, SaysWhatIsWrongInOneLine) {
  const auto error = [&](const std::string& arguments) {
    const auto outcome = run_zoo(runs_.dir(), "serve " + arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(error("none --port 0"), HasSubstr("none"));
  EXPECT_THAT(error("a=writer a=writer --port 0"), HasSubstr("two models are called 'a'"));
  EXPECT_THAT(error("writer writer --port 0"), HasSubstr("two models are called 'writer'"));
  EXPECT_THAT(error("a=writer b=writer --draft writer --port 0"),
              HasSubstr("--draft proposes tokens for one"));
  EXPECT_THAT(error("a=writer b=writer --lens x --port 0"), HasSubstr("--lens was trained for one model"));
  EXPECT_THAT(error("writer --lens writer/model.safetensors --port 0"), HasSubstr("is no trained lens"));
  EXPECT_THAT(error("writer --port 70000"), HasSubstr("--port"));
  EXPECT_THAT(error("writer --port 0 --host 192.0.2.1 --api-key k"), HasSubstr("cannot listen at 192.0.2.1"));
  EXPECT_THAT(error("writer --port 0 --memory-limit 0.000001"), HasSubstr("memory limit"));
  EXPECT_THAT(error("writer --port 0 --api-key ''"), HasSubstr("API key is empty"));
}

}  // namespace
}  // namespace zoo

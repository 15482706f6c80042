// The transport alone: broken, slow, large and many requests.

#include "serving/http/http_server.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/serving/http_client.h"
#include "tests/support/errors.h"
#include "tests/support/wait.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using testing::HttpClient;
using testing::kLongest;
using testing::message_of;

constexpr const char* kText = "some text";

/// A server that sends bodies back, and does what paths say.
class EchoServer {
 public:
  explicit EchoServer(HttpLimits limits = {}) : server_({.port = 0, .limits = limits}, handlers()) {
    thread_ = std::thread([this] { server_.run(); });
  }
  ~EchoServer() { stop(); }

  void stop() {
    if (!thread_.joinable()) return;
    server_.stop();
    thread_.join();
  }
  uint16_t port() const { return server_.port(); }
  size_t n_connections() const { return server_.n_connections(); }
  HttpServer& http() { return server_; }
  int n_handled() const { return n_handled_; }
  /// The newest request of the path /wait.
  std::shared_ptr<HttpReply> waiting() {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, kLongest, [&] { return waiting_ != nullptr; }))
      throw std::runtime_error("no request of /wait has come");
    return std::exchange(waiting_, nullptr);
  }

 private:
  HttpHandlers handlers() {
    return {.check_head = [](const HttpRequest& head) -> std::optional<HttpResponse> {
              if (head.path == "/refused") return HttpResponse{.status = 403, .body = "no"};
              return std::nullopt;
            },
            .handle =
                [this](HttpRequest request, std::shared_ptr<HttpReply> reply) {
                  ++n_handled_;
                  if (request.path == "/text") return reply->send({.body = kText});
                  if (request.path == "/header")
                    return reply->send({.body = std::string(request.header("x-a"))});
                  if (request.path == "/throw") throw DataError("thrown");
                  if (request.path == "/wait") {
                    const std::scoped_lock lock(mutex_);
                    waiting_ = std::move(reply);
                    arrived_.notify_one();
                    return;
                  }
                  reply->send({.content_type = "text/plain", .body = request.body});
                },
            .problem =
                [](int status, std::string_view message) {
                  return HttpResponse{.status = status,
                                      .body = nlohmann::json{{"error", {{"message", message}}}}.dump()};
                },
            .log = nullptr};
  }

  std::mutex mutex_;
  std::condition_variable arrived_;  // waiting_ is set
  std::shared_ptr<HttpReply> waiting_;
  std::atomic<int> n_handled_ = 0;
  HttpServer server_;
  std::thread thread_;
};

TEST(HttpServer, AnswersSeveralRequestsOfAConnection) {
  EchoServer server;
  HttpClient client(server.port());
  for (const std::string body : {"\"one\"", "\"two\"", ""}) {
    client.begin_post("/", body);
    EXPECT_EQ(client.read_answer().body, body);
  }
  // Requests that are sent at once are answered in their order.
  client.begin_post("/", "1");
  client.begin_post("/", "2");
  client.begin_post("/", "3");
  for (const char* const body : {"1", "2", "3"}) EXPECT_EQ(client.read_answer().body, body);
  client.send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_TRUE(client.is_at_end());
}

TEST(HttpServer, TakesRequestsByteByByte) {
  EchoServer server;
  HttpClient client(server.port());
  const std::string request = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
  for (const char byte : request) client.send({&byte, 1});
  EXPECT_EQ(client.read_answer().body, "abc");
  client.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_answer().body, "abc");
  client.send("POST / HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("x");
  EXPECT_EQ(client.read_answer().body, "x");
}

TEST(HttpServer, RefusesWhatIsNoRequest) {
  EchoServer server;
  for (const std::string& bytes :
       {std::string("hello\r\n\r\n"), std::string("\x16\x03\x01\x02", 4) + std::string(100, '\0'),
        std::string("GET / HTTP/9.9\r\n\r\n"), std::string("GET  HTTP/1.1\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        std::string("GET / HTTP/1.1\r\nbad header\r\n\r\n")}) {
    HttpClient client(server.port());
    client.send(bytes);
    const auto answer = client.read_answer();
    EXPECT_EQ(answer.status, 400) << bytes;
    EXPECT_THAT(answer.error(), HasSubstr("not a request of HTTP")) << bytes;
    EXPECT_TRUE(client.is_at_end());
  }
}

TEST(HttpServer, RefusesBodiesThatItWouldNotReadAsTheyAreMeant) {
  EchoServer server;
  for (const std::string head : {"POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
                                 "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                                 "GET / HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
                                 "HEAD / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}) {
    HttpClient client(server.port());
    client.send(head);
    EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("HTTP/1.1 400")) << head;
  }
  HttpClient client(server.port());
  client.send("GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST(HttpServer, UnfinishedRequestsLeaveRoomForOthers) {
  EchoServer server({.connections = 3});
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(std::make_unique<HttpClient>(server.port()));
    slow.back()->send("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na");
  }
  HttpClient quick(server.port());
  quick.begin_post("/", "\"quick\"");
  EXPECT_EQ(quick.read_answer().body, "\"quick\"");
  EXPECT_TRUE(slow.front()->is_at_end()) << "the oldest one makes room";
  slow.back()->send("bc");
  EXPECT_EQ(slow.back()->read_answer().body, "abc");
}

TEST(HttpServer, AllBodiesTogetherHaveALimit) {
  EchoServer server({.body_bytes = 1000, .all_bodies_bytes = 2500});
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(std::make_unique<HttpClient>(server.port()));
    slow.back()->send("POST / HTTP/1.1\r\nContent-Length: 1000\r\nExpect: 100-continue\r\n\r\n");
    slow.back()->read_until("\r\n\r\n");  // the server has read the head
  }
  EXPECT_TRUE(slow.front()->is_at_end());
  HttpClient without_body(server.port());
  EXPECT_EQ(without_body.get("/").status, 200) << "it needs no room";
  for (int i = 1; i < 3; ++i) {
    slow[i]->send(std::string(1000, 'x'));
    EXPECT_EQ(slow[i]->read_answer().body.size(), 1000U);
  }
}

/// How long a body in chunks becomes, nobody knows: it may have the most bytes that a body may have.
TEST(HttpServer, BodiesInChunksCountAsTheLargest) {
  EchoServer server({.body_bytes = 1000, .all_bodies_bytes = 1500});
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 2; ++i) {
    slow.push_back(std::make_unique<HttpClient>(server.port()));
    slow.back()->send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
    slow.back()->read_until("\r\n\r\n");
  }
  EXPECT_TRUE(slow.front()->is_at_end());
  slow.back()->send("3\r\nabc\r\n0\r\n\r\n");
  EXPECT_EQ(slow.back()->read_answer().body, "abc");
}

TEST(HttpServer, NoticesAClientThatSendsMoreAndLeaves) {
  EchoServer server;
  std::promise<void> gone;
  {
    HttpClient client(server.port());
    client.send("POST /wait HTTP/1.1\r\nContent-Length: 0\r\n\r\nG");
    server.waiting()->on_gone([&] { gone.set_value(); });
  }
  EXPECT_EQ(gone.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST(HttpServer, RefusesLargeHeadsAndBodies) {
  EchoServer server({.header_bytes = 1000, .body_bytes = 5000});
  HttpClient large(server.port());
  large.send("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x') + "\r\n\r\n");
  EXPECT_EQ(large.read_answer().status, 431);
  HttpClient many(server.port());
  many.send("GET / HTTP/1.1\r\n");
  for (int i = 0; i < 200; ++i) many.send(fmt::format("X-{}: 1\r\n", i));
  EXPECT_EQ(many.read_answer().status, 431);
  // A body of a gigabyte is refused when its length is known, before it is sent.
  HttpClient body(server.port());
  body.send("POST / HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n");
  const auto answer = body.read_answer();
  EXPECT_EQ(answer.status, 413);
  EXPECT_THAT(answer.error(), HasSubstr("more than 5000 bytes"));
  HttpClient chunked(server.port());
  chunked.send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  const auto chunk = "400\r\n" + std::string(1024, 'x') + "\r\n";
  for (int i = 0; i < 10; ++i) chunked.send(chunk);
  EXPECT_EQ(chunked.read_answer().status, 413);
}

TEST(HttpServer, SlowClientsAreCutOffAndOthersServedMeanwhile) {
  EchoServer server(
      {.to_send_request = std::chrono::milliseconds(300), .idle = std::chrono::milliseconds(300)});
  std::vector<std::unique_ptr<HttpClient>> slow;
  for (int i = 0; i < 50; ++i) {
    slow.push_back(std::make_unique<HttpClient>(server.port()));
    if (i % 2 == 0) slow.back()->send("POST / HTTP/1.1\r\nContent-Le");
  }
  HttpClient client(server.port());
  client.begin_post("/", "x");
  EXPECT_EQ(client.read_answer().body, "x");
  for (const auto& one : slow) EXPECT_TRUE(one->is_at_end());  // waits for the end
}

/// Writes 64 MiB to a client that reads nothing, and returns when the server says that it is gone.
void expect_cut_off(const HttpLimits& limits) {
  EchoServer server(limits);
  HttpClient client(server.port());
  client.send("GET /wait HTTP/1.1\r\n\r\n");
  const auto reply = server.waiting();
  std::promise<void> gone;
  reply->begin({});
  reply->on_gone([&] { gone.set_value(); });
  for (int i = 0; i < 64; ++i) reply->write(std::string(1 << 20, 'x'));
  EXPECT_EQ(gone.get_future().wait_for(kLongest), std::future_status::ready);
}

TEST(HttpServer, AReaderThatTakesNothingIsCutOff) {
  expect_cut_off({.unsent_bytes = size_t{1} << 40, .to_take_answer = std::chrono::milliseconds(300)});
}

TEST(HttpServer, AReaderThatFallsBehindIsCutOff) {
  expect_cut_off({.unsent_bytes = 1 << 20, .to_take_answer = std::chrono::hours(1)});
}

TEST(HttpServer, HearsThatAClientIsGone) {
  EchoServer server;
  HttpClient client(server.port());
  client.send("GET /wait HTTP/1.1\r\n\r\n");
  const auto reply = server.waiting();
  std::promise<void> gone;
  reply->on_gone([&] { gone.set_value(); });
  client.close();
  EXPECT_EQ(gone.get_future().wait_for(kLongest), std::future_status::ready);
  reply->send({.body = "too late"});
}

TEST(HttpServer, WhatAHandlerThrowsOrForgetsIsAnEndToo) {
  EchoServer server;
  HttpClient client(server.port());
  const auto answer = client.get("/throw");
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(answer.error(), "thrown");
  client.send("GET /wait HTTP/1.1\r\n\r\n");
  server.waiting().reset();
  EXPECT_TRUE(client.is_at_end());
}

TEST(HttpServer, ConnectionsWithoutARequestMakePlaceForOthers) {
  EchoServer server({.connections = 5});
  std::vector<std::unique_ptr<HttpClient>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    if (i % 2 == 0) clients.back()->send("GET / HT");
  }
  // Those that send nothing, or only the beginning of a request, are closed, the oldest first.
  std::vector<std::shared_ptr<HttpReply>> streams;
  for (size_t i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    EXPECT_TRUE(clients[i]->is_at_end());
    clients.back()->send("GET /wait HTTP/1.1\r\n\r\n");
    streams.push_back(server.waiting());
    streams.back()->begin({});
    EXPECT_THAT(clients.back()->read_until("\r\n\r\n"), HasSubstr("200 OK"));
  }
  for (const auto& stream : streams) stream->finish();
  for (size_t i = 5; i < 10; ++i) EXPECT_EQ(clients[i]->read_until("\r\n\r\n"), "0\r\n\r\n");
}

TEST(HttpServer, TooManyRequestsAreRefused) {
  EchoServer server({.connections = 3});
  std::vector<std::unique_ptr<HttpClient>> clients;
  std::vector<std::shared_ptr<HttpReply>> replies;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    clients.back()->send("GET /wait HTTP/1.1\r\n\r\n");
    replies.push_back(server.waiting());
  }
  for (int i = 0; i < 3; ++i) {  // one that was refused has made no place for the next one
    HttpClient more(server.port());
    const auto answer = more.read_answer();
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.error(), "too many connections: ask again later");
    EXPECT_TRUE(more.is_at_end());
    more.close();
    while (server.n_connections() > 3) std::this_thread::yield();
  }
  for (const auto& reply : replies) reply->send({.body = "done"});
  for (const auto& client : clients) EXPECT_EQ(client->read_answer().body, "done");
  EXPECT_EQ(HttpClient(server.port()).get("/").status, 200);
}

TEST(HttpServer, FinishesWhatItAcceptedBeforeItStops) {
  EchoServer server;
  HttpClient idle(server.port()), busy(server.port()), streaming(server.port());
  EXPECT_EQ(idle.get("/").status, 200);
  busy.send("GET /wait HTTP/1.1\r\n\r\n");
  const auto reply = server.waiting();
  streaming.send("GET /wait HTTP/1.1\r\n\r\n");
  const auto stream = server.waiting();
  stream->begin({});
  stream->write("ab");
  std::thread stopping([&] { server.stop(); });
  EXPECT_TRUE(idle.is_at_end());
  HttpClient late(server.port());
  EXPECT_EQ(late.get("/").status, 503);
  late.close();
  stream->write("c");
  stream->finish();
  reply->send({.body = "done"});
  EXPECT_EQ(busy.read_answer().body, "done");
  EXPECT_EQ(streaming.read_answer().body, "abc");
  busy.close();
  streaming.close();
  stopping.join();
  EXPECT_FALSE(HttpClient(server.port()).is_connected());
}

TEST(HttpServer, HeadHasTheHeadOfGetAlone) {
  EchoServer server;
  HttpClient client(server.port());
  const auto get = client.get("/text");
  EXPECT_EQ(get.body, kText);
  for (int round = 0; round < 2; ++round) {
    client.send("HEAD /text HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(client.read_until("\r\n\r\n"), get.head);
  }
  // What refuses a request has no body either.
  client.send("HEAD /refused HTTP/1.1\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("403 Forbidden\r\n"));
  EXPECT_EQ(client.get("/text").body, kText);
  // It has no body, and what would be one is no request.
  client.send("HEAD /text HTTP/1.1\r\nContent-Length: 9\r\n\r\nGET /text");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("400 Bad Request\r\n"));
  EXPECT_TRUE(client.is_at_end());
}

TEST(HttpServer, RepeatedHeadersAreAList) {
  EchoServer server;
  HttpClient client(server.port());
  EXPECT_EQ(client.get("/header", "X-A: 1\r\nx-a:   2, 3\r\nX-B: 9\r\nX-A: 4\r\n").body, "1, 2, 3, 4");
  EXPECT_EQ(client.get("/header", "X-A:\r\nX-A: 1\r\n").body, "1");
  for (const char* const lengths :
       {"Content-Length: 3\r\nContent-Length: 4\r\n", "Content-Length: 3, 4\r\n"}) {
    HttpClient unsure(server.port());
    unsure.send(fmt::format("POST / HTTP/1.1\r\n{}\r\nabcd", lengths));
    EXPECT_EQ(unsure.read_answer().status, 400) << lengths;
    EXPECT_TRUE(unsure.is_at_end());
  }
}

TEST(HttpServer, TheUnreadBodyOfARefusedRequestIsNoRequest) {
  EchoServer server;
  const std::string hidden = "GET /text HTTP/1.1\r\n\r\n";
  for (const std::string& body :
       {fmt::format("Content-Length: {}\r\n\r\n{}", hidden.size(), hidden),
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden, "Content-Length: 100000\r\n\r\n" + hidden}) {
    HttpClient client(server.port());
    client.send("POST /refused HTTP/1.1\r\n" + body);
    const auto answer = client.read_answer();
    EXPECT_EQ(answer.status, 403);
    EXPECT_EQ(answer.body, "no");
    EXPECT_THAT(answer.head, HasSubstr("Connection: close\r\n"));
    EXPECT_TRUE(client.is_at_end()) << body;
  }
  EXPECT_EQ(server.n_handled(), 0);
  // Without a body the connection stays.
  HttpClient client(server.port());
  for (int round = 0; round < 2; ++round) {
    const auto answer = client.get("/refused");
    EXPECT_EQ(answer.status, 403);
    EXPECT_THAT(answer.head, ::testing::Not(HasSubstr("Connection:")));
  }
  EXPECT_EQ(client.get("/text").body, kText);
}

TEST(HttpServer, TheRestOfALargeBodyDoesNotHideTheAnswer) {
  EchoServer server({.body_bytes = 1000});
  HttpClient client(server.port());
  client.begin_post("/", std::string(500'000, 'x'));
  EXPECT_EQ(client.read_answer().status, 413);
  HttpClient refused(server.port());
  refused.begin_post("/refused", std::string(900, 'x'));
  EXPECT_EQ(refused.read_answer().status, 403);
}

TEST(HttpServer, ConnectionsCloseWhenTheirClientsSaySo) {
  EchoServer server;
  const std::string close = "Connection: close\r\n";
  for (const std::string& head :
       {"GET /text HTTP/1.1\r\n" + close, std::string("GET /text HTTP/1.1\r\nconnection: Close\r\n"),
        std::string("GET /text HTTP/1.0\r\n"), "GET /refused HTTP/1.1\r\n" + close}) {
    const int n_before = server.n_handled();
    HttpClient client(server.port());
    client.send(head + "\r\nGET /text HTTP/1.1\r\n\r\n");  // nobody answers the second one
    const auto answer = client.read_answer();
    EXPECT_NE(answer.status, 0);
    EXPECT_THAT(answer.head, HasSubstr(close)) << head;
    EXPECT_TRUE(client.is_at_end()) << head;
    EXPECT_LE(server.n_handled(), n_before + 1);
  }
  HttpClient streaming(server.port());
  streaming.send("GET /wait HTTP/1.1\r\n" + close + "\r\n");
  const auto stream = server.waiting();
  stream->begin({});
  stream->write("ab");
  stream->finish();
  const auto answer = streaming.read_answer();
  EXPECT_EQ(answer.body, "ab");
  EXPECT_THAT(answer.head, HasSubstr(close));
  EXPECT_TRUE(streaming.is_at_end());
  HttpClient open(server.port());
  EXPECT_THAT(open.get("/text").head, ::testing::Not(HasSubstr("Connection:")));
}

// The server closes its door while somebody comes in.
TEST(HttpServer, StopsWhileAClientComes) {
  for (int round = 0; round < 300; ++round) {
    EchoServer server;
    const HttpClient client(server.port());
    EXPECT_TRUE(client.is_connected());
  }
}

TEST(HttpServer, AnswersSayThatTheServerStops) {
  EchoServer server;
  const std::string close = "Connection: close\r\n";
  std::vector<std::unique_ptr<HttpClient>> clients;
  std::vector<std::shared_ptr<HttpReply>> replies;
  for (const std::string& header : {std::string(), close, std::string()}) {
    clients.push_back(std::make_unique<HttpClient>(server.port()));
    clients.back()->send("GET /wait HTTP/1.1\r\n" + header + "\r\n");
    replies.push_back(server.waiting());
  }
  std::thread stopping([&] { server.stop(); });
  EXPECT_TRUE(testing::comes_true([&] { return server.http().is_stopping(); }));
  HttpClient late(server.port());
  const auto refused = late.get("/text");
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.head, HasSubstr(close));
  replies[0]->send({.body = "done"});
  replies[1]->send({.body = "done"});
  replies[2]->begin({});
  replies[2]->write("do");
  replies[2]->write("ne");
  replies[2]->finish();
  for (const auto& client : clients) {
    const auto answer = client->read_answer();
    EXPECT_EQ(answer.body, "done");
    EXPECT_THAT(answer.head, HasSubstr(close));
    EXPECT_TRUE(client->is_at_end());
    client->close();
  }
  late.close();
  stopping.join();
}

TEST(HttpServer, SaysIfItCannotListen) {
  EchoServer server;
  EXPECT_THAT(message_of<UsageError>([&] { HttpServer({.port = server.port()}, {}); }),
              HasSubstr("cannot listen at 127.0.0.1"));
  EXPECT_THAT(message_of<UsageError>([] { HttpServer({.host = "192.0.2.1", .port = 0}, {}); }),
              HasSubstr("cannot listen at 192.0.2.1"));
  EXPECT_TRUE(is_loopback("127.0.0.1"));
  EXPECT_TRUE(is_loopback("::1"));
  EXPECT_FALSE(is_loopback("0.0.0.0"));
}

}  // namespace
}  // namespace zoo

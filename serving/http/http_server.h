#pragma once
// HTTP/1.1 over sockets. Connections are asynchronous: a slow client costs a connection and no thread.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serving/http/http_message.h"

namespace zoo {

struct HttpLimits {
  uint32_t header_bytes = 16 << 10;
  uint64_t body_bytes = 32 << 20;
  /// Of all bodies that still come; more close the oldest of their connections.
  uint64_t all_bodies_bytes = 512 << 20;
  size_t connections = 1024;       // more take the place of one without a whole request, or get 503
  size_t unsent_bytes = 16 << 20;  // of a stream whose client reads slowly; more end the connection
  std::chrono::milliseconds to_send_request{60'000};  // from its first byte to its last
  std::chrono::milliseconds to_take_answer{30'000};   // for the next bytes of it
  std::chrono::milliseconds idle{60'000};             // between requests
};

/// What ends the server. SIGINT or SIGTERM let it finish what was accepted; the second one ends the process
/// at once.
enum class StopOn { signals, request_only };

struct HttpOptions {
  std::string host = "127.0.0.1";  // an address, or a name that has one
  uint16_t port = 8080;            // 0: any that is free
  HttpLimits limits = {};
  int threads = 4;  // that call handlers
  StopOn stop_on = StopOn::request_only;
};

/// The way back to the client of one request. May be used by any thread, one at a time, and may outlive the
/// connection: what cannot be sent any more is dropped.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  /// The whole answer.
  virtual void send(HttpResponse response) = 0;
  /// The beginning of an answer whose body comes in parts; response.body is ignored.
  virtual void begin(HttpResponse response) = 0;
  virtual void write(std::string part) = 0;
  virtual void finish() = 0;
  /// Calls `gone` once if the client goes away, or has gone, before the answer is complete.
  virtual void on_gone(std::function<void()> gone) = 0;
  /// Adds what the log says of this request.
  virtual void note(AccessNote note) = 0;
};

struct HttpHandlers {
  /// Looks at a request before its body is read, on the thread of the network: must be quick. An answer ends
  /// the request.
  std::function<std::optional<HttpResponse>(const HttpRequest& head)> check_head;
  /// Answers a request, now or later. What it throws is answered with status 500.
  std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)> handle;
  /// The answer to what is not a request, is too large or too late.
  std::function<HttpResponse(int status, std::string_view message)> problem;
  /// Hears of each request when it is over, on the thread of the network.
  std::function<void(const AccessRecord& record)> log;
};

class HttpServer {
 public:
  class Impl;

  /// Listens. Throws UsageError if the address is not one of this machine or is taken.
  HttpServer(HttpOptions options, HttpHandlers handlers);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  uint16_t port() const;
  /// Serves until stop() or a signal, and then until all accepted requests are answered.
  void run();
  /// Accepted requests are finished, others get 503. May be called from any thread.
  void stop();
  /// May be called from any thread.
  bool is_stopping() const;
  size_t n_connections() const;

 private:
  std::shared_ptr<Impl> impl_;
};

/// Whether a host, an address or a name, is only reached from this machine. Throws UsageError if it has no
/// address.
bool is_loopback(const std::string& host);

}  // namespace zoo

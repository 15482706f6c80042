// The only source that includes Boost, which takes long to compile.

#include "serving/http/http_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <exception>
#include <list>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using Clock = std::chrono::steady_clock;

constexpr int kClientGone = 499, kUnavailable = 503;
constexpr size_t kMostDrained = size_t{1} << 20;  // bytes of a refused body that are read and dropped

std::string_view as_view(beast::string_view text) { return {text.data(), text.size()}; }

HttpRequest read_head(const http::request<http::string_body>& message) {
  HttpRequest request;
  request.method = as_view(message.method_string());
  const auto target = as_view(message.target());
  request.path = target.substr(0, target.find_first_of("?#"));
  for (const auto& field : message) {
    auto& value = request.headers[ascii_lower(as_view(field.name_string()))];
    if (!value.empty()) value += ", ";
    value += as_view(field.value());
  }
  return request;
}

std::vector<tcp::endpoint> endpoints_of(const std::string& host, uint16_t port) {
  asio::io_context context;
  tcp::resolver resolver(context);
  error_code problem;
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, problem);
  if (problem || found.empty())
    throw UsageError(fmt::format("the host '{}' has no address: {}", host, problem.message()));
  return {found.begin(), found.end()};
}

/// Each connection is a file; a process may have few at first.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

bool is_loopback(const std::string& host) {
  return std::ranges::all_of(endpoints_of(host, 0),
                             [](const tcp::endpoint& endpoint) { return endpoint.address().is_loopback(); });
}

class Connection;

class HttpServer::Impl : public std::enable_shared_from_this<HttpServer::Impl> {
 public:
  Impl(HttpOptions options, HttpHandlers handlers);

  void run();
  void stop();
  void accept();
  bool make_place();
  void make_room_for_bodies(const Connection& newest);
  void remove(const std::shared_ptr<Connection>& connection);
  void end_if_done();

  const HttpOptions options;
  const HttpHandlers handlers;
  asio::io_context context{1};
  asio::thread_pool workers;
  tcp::acceptor acceptor{context};
  uint16_t port = 0;
  asio::signal_set signals{context};
  asio::steady_timer pause{context};
  // Only the network's thread uses these two.
  std::list<std::shared_ptr<Connection>> connections;  // in the order of their arrival
  size_t n_refused = 0;                                // of these, how many only hear that there is no place
  std::atomic<bool> stopping = false;
  std::atomic<size_t> n_connections = 0;

 private:
  void wait_for_signals();
};

/// One client: reads a request, has it answered, and reads the next one. All functions run on the thread of
/// the network, except those of HttpReply, which hand over to it.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, HttpServer::Impl& server);

  void begin() { next_request(); }
  /// Begins with an answer, for a connection that has no place.
  void turn_away();
  void close();
  enum class Phase {
    idle,       // between two requests
    head,       // the head of a request comes
    body,       // its body comes
    waiting,    // it is whole, and its answer is made
    streaming,  // parts of its answer are sent
    complete,   // no part of the answer is missing; some may still have to be sent
    closed
  };
  Phase phase() const { return phase_; }
  /// The most bytes of memory that the body of an unfinished request takes.
  uint64_t body_bytes() const;
  bool is_turned_away() const { return is_turned_away_; }

 private:
  friend class Reply;

  void refuse(int status, std::string_view message);
  void next_request();
  void read_request();
  void on_head(error_code problem);
  void read_body();
  std::string problem_with_body() const;
  void on_body(error_code problem);
  void on_read_problem(error_code problem);
  void handle();
  void watch_client();
  void client_is_gone();

  // Answers to request number `number`; those to earlier ones come too late.
  void send(uint64_t number, HttpResponse response);
  void begin_stream(uint64_t number, HttpResponse response);
  void write(uint64_t number, std::string part);
  void finish(uint64_t number);
  void on_gone(uint64_t number, std::function<void()> gone);
  void note(uint64_t number, AccessNote note);

  http::response<http::string_body> head_of(const HttpResponse& response) const;
  void queue(std::string bytes);
  void write_next();
  void on_written(error_code problem);
  void answered();
  void close_politely();
  void drain();

  HttpServer::Impl& server_;
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  HttpRequest request_;        // until it is handed over
  std::string method_, path_;  // of it
  Clock::time_point begin_;

  uint64_t number_ = 0;  // of the current request
  Phase phase_ = Phase::idle;
  bool is_turned_away_ = false, keeps_alive_ = false, is_watching_ = false;
  int status_ = 0;
  AccessNote note_;
  std::function<void()> gone_;
  std::deque<std::string> unsent_;
  size_t n_unsent_ = 0;         // bytes
  size_t n_sent_of_first_ = 0;  // bytes of unsent_.front()
  bool is_writing_ = false;
  std::array<char, 4096> drained_;
  size_t n_drained_ = 0;
};

/// Hands what it is told over to the thread of the network.
class Reply final : public HttpReply {
 public:
  Reply(std::shared_ptr<Connection> connection, std::shared_ptr<HttpServer::Impl> server, uint64_t number)
      : server_(std::move(server)), connection_(std::move(connection)), number_(number) {}
  /// An answer that nobody gives any more.
  ~Reply() override {
    asio::post(server_->context, [connection = connection_, number = number_] {
      if (connection->number_ == number && connection->phase_ != Connection::Phase::complete)
        connection->close();
    });
  }

  void send(HttpResponse response) override {
    later([response = std::move(response)](Connection& to, uint64_t number) mutable {
      to.send(number, std::move(response));
    });
  }
  void begin(HttpResponse response) override {
    later([response = std::move(response)](Connection& to, uint64_t number) mutable {
      to.begin_stream(number, std::move(response));
    });
  }
  void write(std::string part) override {
    later([part = std::move(part)](Connection& to, uint64_t number) mutable {
      to.write(number, std::move(part));
    });
  }
  void finish() override {
    later([](Connection& to, uint64_t number) { to.finish(number); });
  }
  void on_gone(std::function<void()> gone) override {
    later([gone = std::move(gone)](Connection& to, uint64_t number) mutable {
      to.on_gone(number, std::move(gone));
    });
  }
  void note(AccessNote note) override {
    later([note = std::move(note)](Connection& to, uint64_t number) mutable {
      to.note(number, std::move(note));
    });
  }

 private:
  template <class Action>
  void later(Action action) {
    asio::post(server_->context, [connection = connection_, number = number_,
                                  action = std::move(action)]() mutable { action(*connection, number); });
  }

  std::shared_ptr<HttpServer::Impl> server_;  // outlives the connection, which refers to it
  std::shared_ptr<Connection> connection_;
  uint64_t number_;
};

// ---- a connection: reading

Connection::Connection(tcp::socket socket, HttpServer::Impl& server)
    : server_(server), stream_(std::move(socket)), begin_(Clock::now()) {
  error_code ignored;
  stream_.socket().set_option(tcp::no_delay(true), ignored);
}

/// Waits for the first byte of the next request.
void Connection::next_request() {
  if (server_.stopping && number_ > 0 && buffer_.size() == 0) return close();
  phase_ = Phase::idle;
  status_ = 0;
  ++number_;
  request_ = {};
  method_.clear();
  path_.clear();
  note_ = {};
  gone_ = nullptr;
  parser_.emplace();
  parser_->header_limit(server_.options.limits.header_bytes);
  parser_->body_limit(server_.options.limits.body_bytes);
  if (buffer_.size() > 0) return read_request();
  constexpr std::chrono::milliseconds moment(500);
  stream_.expires_after(server_.stopping ? moment : server_.options.limits.idle);
  constexpr size_t first_bytes = 4096;
  stream_.async_read_some(buffer_.prepare(first_bytes),
                          [self = shared_from_this()](error_code problem, size_t n) {
                            if (problem) return self->close();
                            self->buffer_.commit(n);
                            self->read_request();
                          });
}

void Connection::read_request() {
  phase_ = Phase::head;
  begin_ = Clock::now();
  stream_.expires_after(server_.options.limits.to_send_request);
  http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](error_code problem, size_t) { self->on_head(problem); });
}

void Connection::on_head(error_code problem) {
  if (problem) return on_read_problem(problem);
  request_ = read_head(parser_->get());
  method_ = request_.method;
  path_ = request_.path;
  keeps_alive_ = parser_->keep_alive();
  if (server_.stopping) return refuse(kUnavailable, "the server is shutting down: ask again when it is back");
  if (const auto problem_of_body = problem_with_body(); !problem_of_body.empty())
    return refuse(400, problem_of_body);
  try {
    if (auto answer = server_.handlers.check_head(request_)) {
      keeps_alive_ = keeps_alive_ && parser_->is_done();
      return send(number_, std::move(*answer));
    }
  } catch (const std::exception& error) {
    return refuse(500, error.what());
  }
  phase_ = Phase::body;
  server_.make_room_for_bodies(*this);
  if (ascii_lower(request_.header("expect")) == "100-continue") {
    static const std::string kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kContinue),
                      [self = shared_from_this()](error_code failed, size_t) {
                        failed ? self->close() : self->read_body();
                      });
    return;
  }
  read_body();
}

/// Why a body as the head announces it is not read; empty: it is.
std::string Connection::problem_with_body() const {
  const auto coding = ascii_lower(request_.header("transfer-encoding"));
  if (!coding.empty() && coding != "chunked")
    return fmt::format("the transfer encoding '{}' is not known here: use chunked", excerpt(coding));
  const bool has_body = !coding.empty() || parser_->content_length().value_or(0) > 0;
  if (has_body && (method_ == "GET" || method_ == "HEAD"))
    return fmt::format("a request with {} has no body", method_);
  return "";
}

uint64_t Connection::body_bytes() const {
  if (phase_ != Phase::body) return 0;
  return parser_->chunked() ? server_.options.limits.body_bytes : parser_->content_length().value_or(0);
}

void Connection::read_body() {
  http::async_read(stream_, buffer_, *parser_,
                   [self = shared_from_this()](error_code problem, size_t) { self->on_body(problem); });
}

void Connection::on_body(error_code problem) {
  if (problem) return on_read_problem(problem);
  request_.body = std::move(parser_->get().body());
  handle();
}

void Connection::on_read_problem(error_code problem) {
  const auto& limits = server_.options.limits;
  if (problem == beast::error::timeout) return close();
  if (problem == http::error::end_of_stream || problem == asio::error::eof ||
      problem == asio::error::connection_reset || problem == asio::error::operation_aborted ||
      problem == http::error::partial_message) {
    return close();
  }
  if (problem == http::error::body_limit)
    return refuse(413, fmt::format("the body has more than {} bytes", limits.body_bytes));
  if (problem == http::error::header_limit)
    return refuse(431, fmt::format("the header has more than {} bytes", limits.header_bytes));
  refuse(400, fmt::format("this is not a request of HTTP: {}", problem.message()));
}

void Connection::handle() {
  phase_ = Phase::waiting;
  stream_.expires_never();
  watch_client();
  auto reply = std::make_shared<Reply>(shared_from_this(), server_.shared_from_this(), number_);
  asio::post(server_.workers,
             [request = std::exchange(request_, {}), reply, &handlers = server_.handlers]() mutable {
               try {
                 handlers.handle(std::move(request), reply);
               } catch (const std::exception& error) {
                 reply->send(handlers.problem(500, error.what()));
               }
             });
}

/// Notices when the client closes its end while the answer is made. Bytes that come meanwhile are the next
/// request and are kept. A client that sends more than a head may have is not watched any longer.
void Connection::watch_client() {
  if (is_watching_) return;
  is_watching_ = true;
  stream_.socket().async_wait(
      tcp::socket::wait_read, [self = shared_from_this(), number = number_](error_code problem) {
        self->is_watching_ = false;
        if (problem || self->number_ != number || self->phase_ >= Phase::complete) return;
        error_code failed;
        constexpr size_t some_bytes = 4096;
        const size_t n = self->stream_.socket().receive(self->buffer_.prepare(some_bytes), 0, failed);
        if (failed || n == 0) return self->client_is_gone();
        self->buffer_.commit(n);
        if (self->buffer_.size() < self->server_.options.limits.header_bytes) self->watch_client();
      });
}

void Connection::client_is_gone() {
  if (phase_ == Phase::closed) return;
  status_ = phase_ >= Phase::streaming ? status_ : kClientGone;
  close();
}

// ---- a connection: answering

http::response<http::string_body> Connection::head_of(const HttpResponse& response) const {
  http::response<http::string_body> message(static_cast<http::status>(response.status), 11);
  message.set(http::field::content_type, response.content_type);
  for (const auto& [name, value] : response.headers) message.set(name, value);
  message.keep_alive(keeps_alive_);
  return message;
}

void Connection::send(uint64_t number, HttpResponse response) {
  if (number != number_ || phase_ >= Phase::complete) return;
  phase_ = Phase::complete;
  status_ = response.status;
  if (server_.stopping) keeps_alive_ = false;
  auto head = head_of(response);
  head.content_length(response.body.size());
  std::string bytes = fmt::format("HTTP/1.1 {} {}\r\n", response.status, as_view(head.reason()));
  for (const auto& field : head)
    bytes += fmt::format("{}: {}\r\n", as_view(field.name_string()), as_view(field.value()));
  bytes += "\r\n";
  if (method_ != "HEAD") bytes += response.body;
  queue(std::move(bytes));
}

void Connection::begin_stream(uint64_t number, HttpResponse response) {
  if (number != number_ || phase_ >= Phase::streaming) return;
  phase_ = Phase::streaming;
  status_ = response.status;
  if (server_.stopping) keeps_alive_ = false;
  auto head = head_of(response);
  head.chunked(true);
  std::string bytes = fmt::format("HTTP/1.1 {} {}\r\n", response.status, as_view(head.reason()));
  for (const auto& field : head)
    bytes += fmt::format("{}: {}\r\n", as_view(field.name_string()), as_view(field.value()));
  queue(bytes + "\r\n");
}

void Connection::write(uint64_t number, std::string part) {
  if (number != number_ || phase_ != Phase::streaming || part.empty()) return;
  queue(fmt::format("{:x}\r\n{}\r\n", part.size(), part));
}

void Connection::finish(uint64_t number) {
  if (number != number_ || phase_ != Phase::streaming) return;
  phase_ = Phase::complete;
  queue("0\r\n\r\n");
}

void Connection::on_gone(uint64_t number, std::function<void()> gone) {
  if (number != number_ || phase_ == Phase::closed) return gone();
  if (phase_ != Phase::complete) gone_ = std::move(gone);
}

void Connection::note(uint64_t number, AccessNote note) {
  if (number == number_) note_ = std::move(note);
}

void Connection::queue(std::string bytes) {
  n_unsent_ += bytes.size();
  unsent_.push_back(std::move(bytes));
  if (phase_ == Phase::streaming && n_unsent_ > server_.options.limits.unsent_bytes) return client_is_gone();
  if (!is_writing_) write_next();
}

void Connection::write_next() {
  is_writing_ = true;
  stream_.expires_after(server_.options.limits.to_take_answer);
  // In pieces, so that a client that takes bytes, slowly, is not too late.
  constexpr size_t piece = size_t{64} << 10;
  const auto& front = unsent_.front();
  const auto rest = std::string_view(front).substr(n_sent_of_first_, piece);
  asio::async_write(stream_, asio::buffer(rest.data(), rest.size()),
                    [self = shared_from_this()](error_code problem, size_t n) {
                      self->n_unsent_ -= n;
                      self->n_sent_of_first_ += n;
                      if (self->n_sent_of_first_ == self->unsent_.front().size()) {
                        self->unsent_.pop_front();
                        self->n_sent_of_first_ = 0;
                      }
                      self->on_written(problem);
                    });
}

void Connection::on_written(error_code problem) {
  is_writing_ = false;
  if (problem || phase_ == Phase::closed) return client_is_gone();
  if (!unsent_.empty()) return write_next();
  if (phase_ == Phase::complete) return answered();
  stream_.expires_never();
}

/// The last byte of an answer was sent.
void Connection::answered() {
  const auto milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin_).count();
  if (server_.handlers.log) {
    server_.handlers.log(
        {.method = method_, .path = path_, .status = status_, .milliseconds = milliseconds, .note = note_});
  }
  gone_ = nullptr;
  phase_ = Phase::idle;
  if (!keeps_alive_ || server_.stopping) return close_politely();
  if (is_watching_) {
    error_code ignored;
    stream_.socket().cancel(ignored);
  }
  next_request();
}

void Connection::refuse(int status, std::string_view message) {
  keeps_alive_ = false;
  send(number_, server_.handlers.problem(status, message));
}

void Connection::turn_away() {
  is_turned_away_ = true;
  refuse(kUnavailable, "too many connections: ask again later");
}

/// Closes the sending end, and drops what still comes for a moment: a connection that is closed with unread
/// bytes is reset, and its client may lose the answer.
void Connection::close_politely() {
  error_code ignored;
  stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
  constexpr std::chrono::seconds moment(2);
  stream_.expires_after(moment);
  drain();
}

void Connection::drain() {
  stream_.async_read_some(asio::buffer(drained_), [self = shared_from_this()](error_code problem, size_t n) {
    self->n_drained_ += n;
    if (problem || self->n_drained_ > kMostDrained) return self->close();
    self->drain();
  });
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  const bool had_request = phase_ >= Phase::body;
  phase_ = Phase::closed;
  error_code ignored;
  stream_.socket().close(ignored);
  if (auto gone = std::exchange(gone_, nullptr)) gone();
  if (had_request && server_.handlers.log) {
    server_.handlers.log(
        {.method = method_,
         .path = path_,
         .status = status_ == 0 ? kClientGone : status_,
         .milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin_).count(),
         .note = note_});
  }
  server_.remove(shared_from_this());
}

// ---- the server

HttpServer::Impl::Impl(HttpOptions from, HttpHandlers with)
    : options(std::move(from)), handlers(std::move(with)), workers(static_cast<size_t>(options.threads)) {
  allow_many_files();
  const auto endpoint = endpoints_of(options.host, options.port).front();
  try {
    acceptor.open(endpoint.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen(asio::socket_base::max_listen_connections);
    port = acceptor.local_endpoint().port();
  } catch (const boost::system::system_error& error) {
    throw UsageError(fmt::format("cannot listen at {}, port {}: {}: choose another --port or --host",
                                 options.host, options.port, error.code().message()));
  }
}

void HttpServer::Impl::wait_for_signals() {
  signals.add(SIGINT);
  signals.add(SIGTERM);
  signals.async_wait([this](error_code problem, int) {
    if (problem) return;
    stop();
    signals.async_wait([](error_code failed, int signal) {
      constexpr int of_signals = 128;
      if (!failed) std::_Exit(of_signals + signal);
    });
  });
}

void HttpServer::Impl::accept() {
  if (!acceptor.is_open()) return;  // closed while a connection was being accepted
  acceptor.async_accept([this](error_code problem, tcp::socket socket) {
    if (problem == asio::error::operation_aborted) return;
    if (problem) {  // too many open files: wait for some to be closed
      constexpr std::chrono::milliseconds moment(100);
      pause.expires_after(moment);
      pause.async_wait([this](error_code stopped) {
        if (!stopped) accept();
      });
      return;
    }
    const bool has_place = make_place();
    if (has_place || n_refused < options.limits.connections) {
      const auto connection = std::make_shared<Connection>(std::move(socket), *this);
      connections.push_back(connection);
      n_connections = connections.size();
      n_refused += has_place ? 0 : 1;
      has_place ? connection->begin() : connection->turn_away();
    }
    accept();
  });
}

/// Returns whether one more connection may be added. If all places are taken, closes the oldest connection
/// without a whole request.
bool HttpServer::Impl::make_place() {
  if (connections.size() - n_refused < options.limits.connections) return true;
  const auto oldest = std::ranges::find_if(connections, [](const auto& connection) {
    return connection->phase() < Connection::Phase::waiting && !connection->is_turned_away();
  });
  if (oldest == connections.end()) return false;
  const auto closed = *oldest;
  closed->close();
  return true;
}

/// Closes the oldest connections whose bodies come, until there is room for that of `newest`, too.
void HttpServer::Impl::make_room_for_bodies(const Connection& newest) {
  for (;;) {
    uint64_t all = 0;
    for (const auto& connection : connections) all += connection->body_bytes();
    if (all <= options.limits.all_bodies_bytes) return;
    const auto oldest = std::ranges::find_if(connections, [&](const auto& connection) {
      return connection.get() != &newest && connection->body_bytes() > 0;
    });
    if (oldest == connections.end()) return;
    const auto closed = *oldest;
    closed->close();
  }
}

void HttpServer::Impl::remove(const std::shared_ptr<Connection>& connection) {
  n_refused -= connection->is_turned_away() ? 1 : 0;
  connections.remove(connection);
  n_connections = connections.size();
  if (stopping) end_if_done();
}

void HttpServer::Impl::run() {
  if (options.stop_on == StopOn::signals) wait_for_signals();
  accept();
  context.run();
  workers.join();
}

void HttpServer::Impl::stop() {
  asio::post(context, [this] {
    stopping = true;
    const auto all = connections;  // closing one removes it
    for (const auto& connection : all) {
      if (connection->phase() < Connection::Phase::body) connection->close();
    }
    end_if_done();
  });
}

void HttpServer::Impl::end_if_done() {
  if (!connections.empty()) return;
  error_code ignored;
  acceptor.close(ignored);
  pause.cancel(ignored);
  signals.cancel(ignored);
}

HttpServer::HttpServer(HttpOptions options, HttpHandlers handlers)
    : impl_(std::make_shared<Impl>(std::move(options), std::move(handlers))) {}
HttpServer::~HttpServer() = default;

uint16_t HttpServer::port() const { return impl_->port; }
void HttpServer::run() { impl_->run(); }
void HttpServer::stop() { impl_->stop(); }
bool HttpServer::is_stopping() const { return impl_->stopping; }
size_t HttpServer::n_connections() const { return impl_->n_connections; }

}  // namespace zoo

#include "serving/http/connection.h"

#include <array>
#include <chrono>
#include <deque>
#include <exception>
#include <string>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "base/text.h"
#include "serving/http/message_text.h"

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

class Connection final : public HttpConnection, public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, HttpNetwork& network);

  void begin() override { next_request(); }
  void turn_away() override;
  void close() override;
  Phase phase() const override { return phase_; }
  bool is_turned_away() const override { return is_turned_away_; }
  uint64_t body_bytes() const override;

  void send(uint64_t number, HttpResponse response) override;
  void begin_stream(uint64_t number, HttpResponse response) override;
  void write(uint64_t number, std::string part) override;
  void finish(uint64_t number) override;
  void on_gone(uint64_t number, std::function<void()> gone) override;
  void note(uint64_t number, AccessNote note) override;
  void forget(uint64_t number) override;

 private:
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

  AfterAnswer after_answer();
  void queue(std::string bytes);
  void write_next();
  void on_written(error_code problem);
  void answered();
  void close_politely();
  void drain();

  HttpNetwork& network_;
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

Connection::Connection(tcp::socket socket, HttpNetwork& network)
    : network_(network), stream_(std::move(socket)), begin_(Clock::now()) {
  error_code ignored;
  stream_.socket().set_option(tcp::no_delay(true), ignored);
}

/// Waits for the first byte of the next request.
void Connection::next_request() {
  if (network_.stopping && number_ > 0 && buffer_.size() == 0) return close();
  phase_ = Phase::idle;
  status_ = 0;
  ++number_;
  request_ = {};
  method_.clear();
  path_.clear();
  note_ = {};
  gone_ = nullptr;
  parser_.emplace();
  parser_->header_limit(network_.options.limits.header_bytes);
  parser_->body_limit(network_.options.limits.body_bytes);
  if (buffer_.size() > 0) return read_request();
  constexpr std::chrono::milliseconds moment(500);
  stream_.expires_after(network_.stopping ? moment : network_.options.limits.idle);
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
  stream_.expires_after(network_.options.limits.to_send_request);
  http::async_read_header(
      stream_, buffer_, *parser_,
      [self = shared_from_this()](error_code problem, size_t) { self->on_head(problem); });
}

void Connection::on_head(error_code problem) {
  if (problem) return on_read_problem(problem);
  request_ = read_head(parser_->get());
  error_code unknown;
  request_.client = stream_.socket().remote_endpoint(unknown).address().to_string();
  method_ = request_.method;
  path_ = request_.path;
  keeps_alive_ = parser_->keep_alive();
  if (network_.stopping)
    return refuse(kUnavailable, "the server is shutting down: ask again when it is back");
  const auto problem_of_body = problem_with_body();
  keeps_alive_ = keeps_alive_ && problem_of_body.empty();  // what follows is no request
  try {
    if (auto answer = network_.handlers.check_head(request_)) {
      keeps_alive_ = keeps_alive_ && parser_->is_done();
      return send(number_, std::move(*answer));
    }
  } catch (const std::exception& error) {
    return refuse(500, error.what());
  }
  if (!problem_of_body.empty()) return refuse(400, problem_of_body);
  phase_ = Phase::body;
  network_.make_room_for_bodies(*this);
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
  return parser_->chunked() ? network_.options.limits.body_bytes : parser_->content_length().value_or(0);
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
  const auto& limits = network_.options.limits;
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
  auto reply = make_reply(shared_from_this(), network_.shared_from_this(), number_);
  asio::post(network_.workers,
             [request = std::exchange(request_, {}), reply, &handlers = network_.handlers]() mutable {
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
        if (self->buffer_.size() < self->network_.options.limits.header_bytes) self->watch_client();
      });
}

void Connection::client_is_gone() {
  if (phase_ == Phase::closed) return;
  status_ = phase_ >= Phase::streaming ? status_ : kClientGone;
  close();
}

AfterAnswer Connection::after_answer() {
  if (network_.stopping) keeps_alive_ = false;
  return keeps_alive_ ? AfterAnswer::keep_alive : AfterAnswer::close;
}

void Connection::send(uint64_t number, HttpResponse response) {
  if (number != number_ || phase_ >= Phase::complete) return;
  phase_ = Phase::complete;
  status_ = response.status;
  auto bytes = head_of_answer(response, after_answer());
  if (method_ != "HEAD") bytes += response.body;
  queue(std::move(bytes));
}

void Connection::begin_stream(uint64_t number, HttpResponse response) {
  if (number != number_ || phase_ >= Phase::streaming) return;
  phase_ = Phase::streaming;
  status_ = response.status;
  queue(head_of_stream(response, after_answer()));
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

void Connection::forget(uint64_t number) {
  if (number == number_ && phase_ != Phase::complete) close();
}

void Connection::queue(std::string bytes) {
  n_unsent_ += bytes.size();
  unsent_.push_back(std::move(bytes));
  if (phase_ == Phase::streaming && n_unsent_ > network_.options.limits.unsent_bytes) return client_is_gone();
  if (!is_writing_) write_next();
}

void Connection::write_next() {
  is_writing_ = true;
  stream_.expires_after(network_.options.limits.to_take_answer);
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
  if (network_.handlers.log) {
    network_.handlers.log(
        {.method = method_, .path = path_, .status = status_, .milliseconds = milliseconds, .note = note_});
  }
  gone_ = nullptr;
  phase_ = Phase::idle;
  if (!keeps_alive_ || network_.stopping) return close_politely();
  if (is_watching_) {
    error_code ignored;
    stream_.socket().cancel(ignored);
  }
  next_request();
}

void Connection::refuse(int status, std::string_view message) {
  keeps_alive_ = false;
  send(number_, network_.handlers.problem(status, message));
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
  if (had_request && network_.handlers.log) {
    network_.handlers.log(
        {.method = method_,
         .path = path_,
         .status = status_ == 0 ? kClientGone : status_,
         .milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin_).count(),
         .note = note_});
  }
  network_.remove(shared_from_this());
}

}  // namespace

std::shared_ptr<HttpConnection> make_connection(tcp::socket socket, HttpNetwork& network) {
  return std::make_shared<Connection>(std::move(socket), network);
}

}  // namespace zoo

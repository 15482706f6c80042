#include "serving/http/http_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <list>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fmt/format.h>

#include "base/error.h"
#include "serving/http/connection.h"

namespace zoo {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

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

/// Hands what it is told over to the thread of the network.
class Reply final : public HttpReply {
 public:
  Reply(std::shared_ptr<HttpConnection> connection, std::shared_ptr<HttpNetwork> network, uint64_t number)
      : network_(std::move(network)), connection_(std::move(connection)), number_(number) {}
  /// An answer that nobody gives any more.
  ~Reply() override {
    later([](HttpConnection& to, uint64_t number) { to.forget(number); });
  }

  void send(HttpResponse response) override {
    later([response = std::move(response)](HttpConnection& to, uint64_t number) mutable {
      to.send(number, std::move(response));
    });
  }
  void begin(HttpResponse response) override {
    later([response = std::move(response)](HttpConnection& to, uint64_t number) mutable {
      to.begin_stream(number, std::move(response));
    });
  }
  void write(std::string part) override {
    later([part = std::move(part)](HttpConnection& to, uint64_t number) mutable {
      to.write(number, std::move(part));
    });
  }
  void finish() override {
    later([](HttpConnection& to, uint64_t number) { to.finish(number); });
  }
  void on_gone(std::function<void()> gone) override {
    later([gone = std::move(gone)](HttpConnection& to, uint64_t number) mutable {
      to.on_gone(number, std::move(gone));
    });
  }
  void note(AccessNote note) override {
    later([note = std::move(note)](HttpConnection& to, uint64_t number) mutable {
      to.note(number, std::move(note));
    });
  }

 private:
  template <class Action>
  void later(Action action) {
    asio::post(network_->context, [connection = connection_, number = number_,
                                   action = std::move(action)]() mutable { action(*connection, number); });
  }

  std::shared_ptr<HttpNetwork> network_;  // outlives the connection, which refers to it
  std::shared_ptr<HttpConnection> connection_;
  uint64_t number_;
};

}  // namespace

std::shared_ptr<HttpReply> make_reply(std::shared_ptr<HttpConnection> connection,
                                      std::shared_ptr<HttpNetwork> network, uint64_t number) {
  return std::make_shared<Reply>(std::move(connection), std::move(network), number);
}

bool is_loopback(const std::string& host) {
  return std::ranges::all_of(endpoints_of(host, 0),
                             [](const tcp::endpoint& endpoint) { return endpoint.address().is_loopback(); });
}

class HttpServer::Impl final : public HttpNetwork {
 public:
  Impl(HttpOptions options, HttpHandlers handlers);

  void run();
  void stop();
  void make_room_for_bodies(const HttpConnection& newest) override;
  void remove(const std::shared_ptr<HttpConnection>& connection) override;

  uint16_t port = 0;
  std::atomic<size_t> n_connections = 0;

 private:
  void wait_for_signals();
  void accept();
  bool make_place();
  void end_if_done();

  tcp::acceptor acceptor_{context};
  asio::signal_set signals_{context};
  asio::steady_timer pause_{context};
  // Only the network's thread uses these two.
  std::list<std::shared_ptr<HttpConnection>> connections_;  // in the order of their arrival
  size_t n_refused_ = 0;  // of these, how many only hear that there is no place
};

HttpServer::Impl::Impl(HttpOptions from, HttpHandlers with) : HttpNetwork(std::move(from), std::move(with)) {
  allow_many_files();
  const auto endpoint = endpoints_of(options.host, options.port).front();
  try {
    acceptor_.open(endpoint.protocol());
    acceptor_.set_option(tcp::acceptor::reuse_address(true));
    acceptor_.bind(endpoint);
    acceptor_.listen(asio::socket_base::max_listen_connections);
    port = acceptor_.local_endpoint().port();
  } catch (const boost::system::system_error& error) {
    throw UsageError(fmt::format("cannot listen at {}, port {}: {}: choose another --port or --host",
                                 options.host, options.port, error.code().message()));
  }
}

void HttpServer::Impl::wait_for_signals() {
  signals_.add(SIGINT);
  signals_.add(SIGTERM);
  signals_.async_wait([this](error_code problem, int) {
    if (problem) return;
    stop();
    signals_.async_wait([](error_code failed, int signal) {
      constexpr int of_signals = 128;
      if (!failed) std::_Exit(of_signals + signal);
    });
  });
}

void HttpServer::Impl::accept() {
  if (!acceptor_.is_open()) return;  // closed while a connection was being accepted
  acceptor_.async_accept([this](error_code problem, tcp::socket socket) {
    if (problem == asio::error::operation_aborted) return;
    if (problem) {  // too many open files: wait for some to be closed
      constexpr std::chrono::milliseconds moment(100);
      pause_.expires_after(moment);
      pause_.async_wait([this](error_code stopped) {
        if (!stopped) accept();
      });
      return;
    }
    const bool has_place = make_place();
    if (has_place || n_refused_ < options.limits.connections) {
      const auto connection = make_connection(std::move(socket), *this);
      connections_.push_back(connection);
      n_connections = connections_.size();
      n_refused_ += has_place ? 0 : 1;
      has_place ? connection->begin() : connection->turn_away();
    }
    accept();
  });
}

/// Returns whether one more connection may be added. If all places are taken, closes the oldest connection
/// without a whole request.
bool HttpServer::Impl::make_place() {
  if (connections_.size() - n_refused_ < options.limits.connections) return true;
  const auto oldest = std::ranges::find_if(connections_, [](const auto& connection) {
    return connection->phase() < HttpConnection::Phase::waiting && !connection->is_turned_away();
  });
  if (oldest == connections_.end()) return false;
  const auto closed = *oldest;
  closed->close();
  return true;
}

/// Closes the oldest connections whose bodies come, until there is room for that of `newest`, too.
void HttpServer::Impl::make_room_for_bodies(const HttpConnection& newest) {
  for (;;) {
    uint64_t all = 0;
    for (const auto& connection : connections_) all += connection->body_bytes();
    if (all <= options.limits.all_bodies_bytes) return;
    const auto oldest = std::ranges::find_if(connections_, [&](const auto& connection) {
      return connection.get() != &newest && connection->body_bytes() > 0;
    });
    if (oldest == connections_.end()) return;
    const auto closed = *oldest;
    closed->close();
  }
}

void HttpServer::Impl::remove(const std::shared_ptr<HttpConnection>& connection) {
  n_refused_ -= connection->is_turned_away() ? 1 : 0;
  connections_.remove(connection);
  n_connections = connections_.size();
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
    const auto all = connections_;  // closing one removes it
    for (const auto& connection : all) {
      if (connection->phase() < HttpConnection::Phase::body) connection->close();
    }
    end_if_done();
  });
}

void HttpServer::Impl::end_if_done() {
  if (!connections_.empty()) return;
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel(ignored);
  signals_.cancel(ignored);
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

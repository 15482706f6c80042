#pragma once
// One client of an HttpServer. Only the sources of this folder include Boost, which takes long to compile.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/thread_pool.hpp>

#include "serving/http/http_server.h"

namespace zoo {

/// A client: its requests are read one after the other, and each is answered before the next one is read. All
/// functions are called by the thread of the network.
class HttpConnection {
 public:
  enum class Phase {
    idle,       // between two requests
    head,       // the head of a request comes
    body,       // its body comes
    waiting,    // it is whole, and its answer is made
    streaming,  // parts of its answer are sent
    complete,   // no part of the answer is missing; some may still have to be sent
    closed
  };

  virtual ~HttpConnection() = default;
  virtual void begin() = 0;
  /// Begins with an answer, for a connection that has no place.
  virtual void turn_away() = 0;
  virtual void close() = 0;
  virtual Phase phase() const = 0;
  virtual bool is_turned_away() const = 0;
  /// The most bytes of memory that the body of an unfinished request takes.
  virtual uint64_t body_bytes() const = 0;

  // Answers to request number `number`, as HttpReply has them; those to earlier ones come too late.
  virtual void send(uint64_t number, HttpResponse response) = 0;
  virtual void begin_stream(uint64_t number, HttpResponse response) = 0;
  virtual void write(uint64_t number, std::string part) = 0;
  virtual void finish(uint64_t number) = 0;
  virtual void on_gone(uint64_t number, std::function<void()> gone) = 0;
  virtual void note(uint64_t number, AccessNote note) = 0;
  /// Nobody answers any more.
  virtual void forget(uint64_t number) = 0;
};

/// What the connections of a server share.
struct HttpNetwork : std::enable_shared_from_this<HttpNetwork> {
  HttpNetwork(HttpOptions with, HttpHandlers by)
      : options(std::move(with)), handlers(std::move(by)), workers(static_cast<size_t>(options.threads)) {}
  virtual ~HttpNetwork() = default;
  /// Closes other connections whose bodies come, until there is room for that of `newest`, too.
  virtual void make_room_for_bodies(const HttpConnection& newest) = 0;
  virtual void remove(const std::shared_ptr<HttpConnection>& connection) = 0;

  const HttpOptions options;
  const HttpHandlers handlers;
  boost::asio::io_context context{1};  // of the network's thread
  boost::asio::thread_pool workers;    // that call handlers
  std::atomic<bool> stopping = false;
};

/// `network` must outlive the connection.
std::shared_ptr<HttpConnection> make_connection(boost::asio::ip::tcp::socket socket, HttpNetwork& network);

/// The way back to the client of request number `number`. It keeps both alive.
std::shared_ptr<HttpReply> make_reply(std::shared_ptr<HttpConnection> connection,
                                      std::shared_ptr<HttpNetwork> network, uint64_t number);

}  // namespace zoo

#pragma once
// Processes that train together, forked by a test.

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "parallel/process_group.h"
#include "tests/support/training.h"

namespace zoo::testing {

/// A port of this machine that no other program gets while this lives.
class Port {
 public:
  /// Whether a program can listen on it that allows addresses to be used again, as c10d does.
  enum class Use { free, taken };

  explicit Port(Use use) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const int yes = 1;
    if (use == Use::free) {
      EXPECT_EQ(::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
    if (use == Use::taken) {
      EXPECT_EQ(::listen(socket_, 1), 0);
    }
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    number_ = ntohs(address.sin_port);
  }
  ~Port() { ::close(socket_); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  uint16_t number() const { return number_; }

 private:
  int socket_;
  uint16_t number_ = 0;
};

/// Runs `body` in `n` processes; a process fails if an expectation in it fails.
inline void in_processes(int64_t n, const std::function<void(const ProcessGroup&)>& body,
                         std::chrono::milliseconds timeout = std::chrono::seconds(240)) {
  const Port port(Port::Use::free);
  std::vector<std::unique_ptr<Child>> children;
  for (int64_t rank = 0; rank < n; ++rank) {
    children.push_back(std::make_unique<Child>([&] {
      const ProcessGroup processes({.rank = rank, .size = n, .port = port.number()}, torch::kCPU, timeout);
      body(processes);
      return ::testing::Test::HasFailure() ? 1 : 0;
    }));
  }
  for (int64_t rank = 0; rank < n; ++rank)
    EXPECT_EQ(children[static_cast<size_t>(rank)]->wait(), 0) << "rank " << rank;
}

}  // namespace zoo::testing

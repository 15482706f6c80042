#pragma once
// A client that sends whatever bytes a test wants.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/wait.h"

namespace zoo::testing {

struct Answer {
  int status = 0;  // 0: the connection ended without an answer
  std::string head = {}, body = {};

  nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false); }
  std::string error() const {
    const auto document = json();
    return document.is_object() && document.contains("error")
               ? document["error"]["message"].get<std::string>()
               : "no error: " + body;
  }
};

class HttpClient {
 public:
  explicit HttpClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval longest{.tv_sec = std::chrono::seconds(kLongest).count(), .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
    is_connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~HttpClient() { close(); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool is_connected() const { return is_connected_; }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  /// Returns false once the server takes nothing more.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  /// Bytes up to `end` and with it; fewer if the connection ends.
  std::string read_until(std::string_view end) {
    size_t at = 0;
    while ((at = held_.find(end)) == held_.npos && read_some()) {
    }
    return take(at == held_.npos ? held_.size() : at + end.size());
  }
  std::string read_bytes(size_t n) {
    while (held_.size() < n && read_some()) {
    }
    return take(std::min(n, held_.size()));
  }
  bool is_at_end() { return held_.empty() && !read_some(); }

  Answer read_answer() {
    Answer answer{.head = read_until("\r\n\r\n")};
    if (answer.head.size() < 12) return answer;
    answer.status = std::atoi(answer.head.c_str() + 9);
    if (answer.head.find("chunked") != std::string::npos) {
      for (;;) {
        const auto size = std::stoul("0" + read_until("\r\n"), nullptr, 16);
        answer.body += read_bytes(size);
        read_bytes(2);
        if (size == 0) return answer;
      }
    }
    const size_t at = answer.head.find("Content-Length: ");
    if (at != std::string::npos) answer.body = read_bytes(std::stoul(answer.head.substr(at + 16)));
    return answer;
  }

  Answer get(std::string_view path, std::string_view headers = "") {
    send(fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, headers));
    return read_answer();
  }
  void begin_post(std::string_view path, const std::string& body, std::string_view headers = "") const {
    send(
        fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{}"
                    "Content-Length: {}\r\n\r\n{}",
                    path, headers, body.size(), body));
  }
  Answer post(std::string_view path, const nlohmann::json& body, std::string_view headers = "") {
    begin_post(path, body.dump(), headers);
    return read_answer();
  }

 private:
  bool read_some() {
    char buffer[4096];
    const auto n = ::recv(socket_, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EAGAIN) ADD_FAILURE() << "the server sends nothing more";
    if (n <= 0) return false;
    held_.append(buffer, static_cast<size_t>(n));
    return true;
  }
  std::string take(size_t n) {
    auto result = held_.substr(0, n);
    held_.erase(0, n);
    return result;
  }

  int socket_;
  bool is_connected_ = false;
  std::string held_;
};

}  // namespace zoo::testing

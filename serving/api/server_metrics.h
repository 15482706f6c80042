#pragma once
// Counts and times of a server, as Prometheus reads them.

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "serving/http/http_message.h"
#include "serving/service.h"

namespace zoo {

/// Counts requests. May be used by several threads.
class ServerMetrics {
 public:
  /// `route`: the path of the route, so that strangers cannot make as many names as they like.
  void add(const std::string& route, const AccessRecord& record);
  /// The text format of Prometheus (version 0.0.4): requests by route and status, their times, and what the
  /// models of the service have done.
  std::string text(const Service& service) const;

 private:
  static constexpr std::array kSeconds{0.005, 0.01, 0.025, 0.05, 0.1,  0.25, 0.5,
                                       1.0,   2.5,  5.0,   10.0, 30.0, 60.0};
  struct Times {
    std::array<int64_t, kSeconds.size()> within{};  // requests that took at most so long
    int64_t n = 0;
    double seconds = 0;
  };

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, int64_t> requests_;  // by route and status
  std::map<std::string, Times> times_;                       // by route
};

}  // namespace zoo

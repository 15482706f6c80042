#pragma once
// Elapsed time.

#include <chrono>

namespace zoo {

class Stopwatch {
 public:
  /// Since construction.
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace zoo

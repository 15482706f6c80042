#pragma once
// Waits of tests end, also if what they wait for never comes.

#include <chrono>
#include <concepts>
#include <thread>

namespace zoo::testing {

/// Long enough for any machine.
inline constexpr std::chrono::minutes kLongest(5);

/// Waits until `holds()`; returns false if that takes longer than kLongest.
bool comes_true(const std::predicate auto& holds) {
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace zoo::testing

#pragma once
// Runs a function on many inputs in child processes, so that an input that ends the process is a finding and
// not the end of the test. Each child takes a batch of inputs; what it is doing stands in memory that it
// shares with its parent.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zoo::fuzz {

struct Bounds {
  double seconds = 5;                // of processor time, for one input
  int64_t bytes = int64_t{1} << 30;  // that the process may grow
  int64_t batch = 2000;              // inputs of one child
  size_t failures = 20;              // after so many the server stops
};

struct Failure {
  int64_t index = 0;
  std::string problem;  // "signal 11 (Segmentation fault)"
};

struct Report {
  int64_t n_inputs = 0, n_accepted = 0;  // the others gave one of the library's own errors
  std::vector<Failure> failures;
  double longest_seconds = 0;  // of processor time
  int64_t longest_index = 0;
  int64_t most_bytes = 0;  // by which a child grew
  int64_t largest_index = 0;
};

/// Handles input number `index`. Returns if the input is accepted; throws a zoo::Error of exit code 2 if it
/// is refused. Everything else is a failure.
using Work = std::function<void(int64_t index)>;

/// Calls `work` with 0 … n-1.
Report run_all(int64_t n, const Work& work, const Bounds& bounds = {});

}  // namespace zoo::fuzz

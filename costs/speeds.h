#pragma once
// Measures the speeds of a comparison's runs so that they can be compared with each other.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "costs/measure.h"

namespace zoo {

struct SpeedOptions {
  c10::Device device = c10::kCPU;
  double seconds = 2;  // of measuring per run
  std::function<bool()> should_stop = nullptr;
  std::function<void(const std::string& line)> on_message = nullptr;
};

struct MeasuredRun {
  std::string name;
  std::filesystem::path dir;
};

/// Measures each run three times, in turns: a, b, c, a, b, c, …. A machine's speed drifts by more than the
/// difference between two architectures; in turns, slow and fast minutes affect all runs alike. Returns the
/// three measurements of each run in the order of `runs`, or nothing where `should_stop` ended it. Throws the
/// errors of open_stored_model() and measure_speed().
std::vector<std::vector<Speed>> measure_in_turns(const std::vector<MeasuredRun>& runs,
                                                 const SpeedOptions& options);

}  // namespace zoo

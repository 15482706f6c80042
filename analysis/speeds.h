#pragma once
// The speeds of a comparison's runs, which have to bear comparison with each other.

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "analysis/measure.h"

namespace zoo {

struct SpeedOptions {
  c10::Device device = c10::kCPU;
  double seconds = 2;  // of measuring, for each run
  std::function<bool()> should_stop = nullptr;
  std::function<void(const std::string& line)> on_message = nullptr;
};

struct MeasuredRun {
  std::string name;
  std::filesystem::path dir;
};

/// Measures each run three times, in turns: a, b, c, a, b, c, …. A machine's speed drifts by more than what
/// separates two architectures, and so all of them have their part of its good and bad minutes. Returns the
/// medians in the order of `runs`; nothing where it was told to stop. Throws as read_run_experiment(),
/// read_run_vocabulary(), open_task() and measure_speed() do.
std::vector<Speed> measure_in_turns(const std::vector<MeasuredRun>& runs, const SpeedOptions& options);

}  // namespace zoo

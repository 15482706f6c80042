#pragma once
// Several processes on this machine that train one model together.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace zoo {

struct LaunchOptions {
  std::vector<std::string> command;  // of each process: the program by its path, and its arguments
  int64_t n_processes = 1;
  std::function<bool()> should_stop = nullptr;  // once true, all are asked to stop (SIGTERM)
};

/// How a launch has ended.
struct LaunchResult {
  int exit_code = 0;   // 0 where all have ended with 0, else that of the first process that failed by itself
  std::string reason;  // where a process was killed or did not answer, in words; else it has said so itself
};

/// Runs the command n times with the variables of torchrun (process_group.h), and keeps the store in which
/// they find each other. Where one fails, the others are given two seconds to notice, five more after
/// SIGTERM, then killed. Throws SystemError where they cannot be started.
LaunchResult launch(const LaunchOptions& options);

/// Whether this process was started by launch(), which says why the processes have ended.
bool is_launched();

}  // namespace zoo

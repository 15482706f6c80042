#pragma once
// Several processes on this machine that train one model together.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace zoo {

struct LaunchOptions {
  std::vector<std::string> command;  // of each process: the path of the program, and its arguments
  int64_t n_processes = 1;
  std::function<bool()> should_stop = nullptr;  // once true, all processes are asked to stop (SIGTERM)
};

/// How a launch has ended.
struct LaunchResult {
  /// 0 if all processes ended with 0, else the exit code of the first process that failed by itself.
  int exit_code = 0;
  /// Not empty if a process was killed or did not answer; in all other cases the process itself gives the
  /// reason.
  std::string reason;
};

/// Runs the command n times with the variables of torchrun (process_group.h), and keeps the store in which
/// the processes find each other. If one fails, the others have two seconds to notice it. Then they get a
/// SIGTERM, and five seconds later they are killed. Throws SystemError where the processes cannot be started.
LaunchResult launch(const LaunchOptions& options);

/// While it lives, this process ends (PeerError::kExitCode) when the process that launched it has gone:
/// launch(), or torchrun. A process that waits for others who will never come would outlive it. If nothing
/// has launched this process, it does nothing.
class EndWithLauncher {
 public:
  EndWithLauncher();
  EndWithLauncher(const EndWithLauncher&) = delete;
  EndWithLauncher& operator=(const EndWithLauncher&) = delete;

  /// From now on there is something to save: the process gets SIGTERM, and has a minute to end by itself.
  /// Before, it ends at once.
  void allow_saving() { may_save_ = true; }

 private:
  std::atomic<bool> may_save_ = false;
  std::jthread watch_;
};

/// Whether launch() has started this process. If so, launch() reports why the processes have ended.
bool is_launched();

}  // namespace zoo

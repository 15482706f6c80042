#pragma once
// Programs that this one starts.

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zoo {

/// Where the terminal sends Ctrl-C: to this process and its child, or only to this process, which then
/// decides what happens to the child.
enum class TerminalSignals { to_both, to_parent_only };

/// A child may receive a SIGTERM before it has a handler for it. The signal then ends the child, or it waits
/// until the child has set its handler and unblocked the signal, as StopSignals does
/// (training/stop_signals.h).
enum class EarlyStop { ends_it, waits };

struct ProcessOptions {
  /// The path of the program and its arguments.
  std::vector<std::string> command;
  /// An open file that the child writes its stdout and stderr to. -1: it inherits both from this process.
  int output = -1;
  TerminalSignals signals = TerminalSignals::to_both;
  EarlyStop early_stop = EarlyStop::ends_it;
  /// Variables to set on top of this process's environment.
  std::vector<std::pair<std::string, std::string>> environment = {};
};

/// A child process. It receives SIGTERM when this process ends for any reason.
class ChildProcess {
 public:
  /// Throws SystemError if it cannot be started.
  explicit ChildProcess(const ProcessOptions& options);
  /// If it is still running, sends SIGTERM and waits.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  /// The exit code; 128 + n if signal n killed it; nullopt while it runs.
  std::optional<int> exit_code();
  /// Asks it to end (SIGTERM).
  void interrupt();
  /// Ends it (SIGKILL).
  void kill();
  /// Waits for its end and returns the exit code.
  int wait();

 private:
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

/// How a function ended in run_in_child().
struct ChildResult {
  std::optional<std::string> value;  // what it returned; nothing if it did not return
  std::string output;                // what was written to stderr
};

/// Calls `work` in a copy of this process (fork), for code that may end its process instead of returning. The
/// copy has only the calling thread. It receives SIGKILL when this process ends. An exception of `work`
/// counts as output. Throws SystemError if there can be no copy.
ChildResult run_in_child(const std::function<std::string()>& work);

/// Path of the running program, for starting it again. Throws SystemError.
std::filesystem::path this_program();

}  // namespace zoo

#pragma once
// Programs that run beside this one.

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zoo {

/// Who gets what is typed to end a program (Ctrl-C): all that run in the terminal, or this process, which
/// then decides what becomes of its child.
enum class TerminalSignals { to_both, to_parent_only };

struct ProcessOptions {
  std::vector<std::string> command;  // the program, by its path, and its arguments
  std::filesystem::path output =
      {};  // stdout and stderr are appended to this file; empty = where those of this go
  TerminalSignals signals = TerminalSignals::to_both;
  std::vector<std::pair<std::string, std::string>> environment =
      {};  // variables to set, beside those of this process
};

/// A child process. It is sent SIGTERM when this process ends, however that happens.
class ChildProcess {
 public:
  /// Throws SystemError where it cannot be started.
  explicit ChildProcess(const ProcessOptions& options);
  /// Ends it with SIGTERM, and waits, if it is still running.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  /// What it exited with, 128 + n where signal n killed it; nothing while it runs.
  std::optional<int> exit_code();
  /// Asks it to end (SIGTERM).
  void interrupt();
  /// Ends it (SIGKILL).
  void kill();
  /// Waits for its end.
  int wait();

 private:
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

/// The program that is running, for starting it again. Throws SystemError.
std::filesystem::path this_program();

}  // namespace zoo

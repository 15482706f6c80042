#include "parallel/launcher.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "base/error.h"
#include "base/process.h"
#include "base/stopwatch.h"
#include "parallel/process_group.h"

namespace zoo {
namespace {

constexpr const char* kLaunched = "ZOO_LAUNCHED";  // the process of launch()
constexpr const char* kHost = "127.0.0.1";
constexpr int kSignal = 128;  // a process killed by signal n has the exit code 128 + n

/// The store in which the processes find each other, on a free port.
c10::intrusive_ptr<c10d::TCPStore> serve_store() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.waitWorkers = false;
  try {
    return c10::make_intrusive<c10d::TCPStore>(kHost, options);
  } catch (const std::exception& error) {
    const std::string_view text = error.what();
    throw SystemError(
        fmt::format("cannot open a port for the processes: {}", text.substr(0, text.find('\n'))));
  }
}

std::vector<ChildProcess> start(const LaunchOptions& options, uint16_t port) {
  std::vector<ChildProcess> processes;
  for (int64_t rank = 0; rank < options.n_processes; ++rank) {
    processes.emplace_back(
        ProcessOptions{.command = options.command,
                       .signals = TerminalSignals::to_parent_only,
                       // A process that dies while it starts would look like a failure.
                       .early_stop = EarlyStop::waits,
                       .environment = {{"RANK", std::to_string(rank)},
                                       {"LOCAL_RANK", std::to_string(rank)},
                                       {"WORLD_SIZE", std::to_string(options.n_processes)},
                                       {"LOCAL_WORLD_SIZE", std::to_string(options.n_processes)},
                                       {"MASTER_ADDR", kHost},
                                       {"MASTER_PORT", std::to_string(port)},
                                       {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                       {"TORCHELASTIC_RESTART_COUNT", "0"},
                                       {kLaunched, std::to_string(::getpid())}}});
  }
  return processes;
}

/// The processes, and which of them was the first to fail by itself.
class Watch {
 public:
  explicit Watch(std::vector<ChildProcess> processes) : processes_(std::move(processes)) {}

  /// Checks all processes once. Returns whether any is still running.
  bool look() {
    bool runs = false;
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      const auto code = processes_[rank].exit_code();
      runs = runs || !code;
      if (!code || *code == 0) continue;
      if (!since_failure_) since_failure_ = std::make_unique<Stopwatch>();
      // A PeerError is a consequence, not the cause; so is an end that we asked for.
      if (*code != PeerError::kExitCode && !cause_ && !ended_by_us_)
        cause_ = std::make_unique<Cause>(Cause{rank, *code});
    }
    return runs;
  }

  void ask_to_stop() {
    for (auto& process : processes_) process.interrupt();
  }

  /// If a process has failed: gives the others time to notice, then ends them.
  void end_the_others() {
    constexpr double kToNotice = 2, kToEnd = 5;  // seconds
    if (!since_failure_) return;
    const double seconds = since_failure_->seconds();
    if (seconds > kToNotice && !ended_by_us_) {
      for (size_t rank = 0; rank < processes_.size(); ++rank) {
        if (!processes_[rank].exit_code()) silent_.push_back(rank);
      }
      ended_by_us_ = true;
      ask_to_stop();
    }
    if (seconds > kToNotice + kToEnd) {
      for (auto& process : processes_) process.kill();
    }
  }

  LaunchResult result() const {
    if (!since_failure_) return {};
    if (cause_ && cause_->code < kSignal) return {.exit_code = cause_->code, .reason = {}};
    if (cause_) {
      return {.exit_code = 1,
              .reason = fmt::format("process {} of {} was killed by a signal ({}), so the others were ended",
                                    cause_->rank, processes_.size(), strsignal(cause_->code - kSignal))};
    }
    return {.exit_code = 1,
            .reason = silent_.empty() ? std::string("the processes have lost contact with each other")
                                      : fmt::format("process {} of {} did not answer, so all were ended",
                                                    fmt::join(silent_, ", "), processes_.size())};
  }

 private:
  struct Cause {
    size_t rank;
    int code;
  };
  std::vector<ChildProcess> processes_;
  std::unique_ptr<Stopwatch> since_failure_;  // null = no process has failed
  std::unique_ptr<Cause> cause_;              // null = no process has failed by itself
  std::vector<size_t> silent_;                // processes that did not notice the failure in time
  bool ended_by_us_ = false;
};

/// The process that has launched this one.
std::optional<pid_t> launcher_of_this() {
  if (const char* const launched = std::getenv(kLaunched)) return static_cast<pid_t>(std::atoi(launched));
  // torchrun does not say which process it is.
  return std::getenv("TORCHELASTIC_RUN_ID") != nullptr ? std::optional(::getppid()) : std::nullopt;
}

}  // namespace

LaunchResult launch(const LaunchOptions& options) {
  const auto store = serve_store();
  Watch watch(start(options, store->getPort()));
  bool asked = false;
  while (watch.look()) {
    if (!asked && options.should_stop && options.should_stop()) {
      asked = true;
      watch.ask_to_stop();
    }
    watch.end_the_others();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return watch.result();
}

EndWithLauncher::EndWithLauncher() {
  const auto launcher = launcher_of_this();
  if (!launcher) return;
  // torchrun's processes get no signal otherwise. (Those of launch() do; see base/process.h.)
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  watch_ = std::jthread([this, launcher = *launcher](const std::stop_token& stop) {
    constexpr double kToSave = 60;  // seconds
    std::optional<Stopwatch> since_its_end;
    for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(20))) {
      // It changes when the parent ends, even if that was before this process could ask for a signal.
      if (::getppid() == launcher) continue;
      if (!since_its_end) since_its_end.emplace();
      if (!may_save_ || since_its_end->seconds() > kToSave) ::_exit(PeerError::kExitCode);
    }
  });
}

bool is_launched() { return std::getenv(kLaunched) != nullptr; }

}  // namespace zoo

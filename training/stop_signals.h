#pragma once
// Ctrl-C lets a training save its state before it ends.

#include <csignal>

namespace zoo {

/// While it lives, the first SIGINT or SIGTERM is only remembered; a second one has its usual effect. Only
/// one object may exist at a time. The constructor unblocks both: one may have waited for it since this
/// process was started (EarlyStop in base/process.h).
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether a signal has come since the construction.
  bool received() const;
  /// What a program returns that the received signal has ended: 130 after Ctrl-C, as shells have it.
  int exit_code() const;

 private:
  struct sigaction old_interrupt_, old_terminate_;
};

}  // namespace zoo

#pragma once
// A polite end on Ctrl-C.

#include <csignal>

namespace zoo {

/// While it lives, the first SIGINT or SIGTERM is only remembered; a second one ends the process as if this
/// were not there. One at a time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Whether a signal came since construction.
  bool received() const;

 private:
  struct sigaction old_interrupt_, old_terminate_;
};

}  // namespace zoo

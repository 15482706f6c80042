#include "training/stop_signals.h"

namespace zoo {
namespace {

// Global, because a signal handler has no other way to report.
volatile std::sig_atomic_t stop_requested = 0;

void request_stop(int signal) {
  if (stop_requested != 0) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
  stop_requested = signal;
}

}  // namespace

StopSignals::StopSignals() {
  stop_requested = 0;
  struct sigaction action = {};
  action.sa_handler = request_stop;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // a write in progress goes on
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
  sigset_t both;
  sigemptyset(&both);
  sigaddset(&both, SIGINT);
  sigaddset(&both, SIGTERM);
  pthread_sigmask(SIG_UNBLOCK, &both, nullptr);
}

StopSignals::~StopSignals() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
}

bool StopSignals::received() const { return stop_requested != 0; }

int StopSignals::exit_code() const {
  constexpr int of_signals = 128;
  return of_signals + stop_requested;
}

}  // namespace zoo

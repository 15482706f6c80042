#include "apps/console/interrupts.h"

#include <unistd.h>

namespace zoo {
namespace {

constexpr int kIdle = 0, kAnswering = 1, kInterrupted = 2;
// Global, because a signal handler has no other way to know and to report.
volatile std::sig_atomic_t state = kIdle;

void interrupt(int signal) {
  if (state == kAnswering) {
    state = kInterrupted;
    return;
  }
  // A signal handler may make these two calls. The output is flushed already.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, "\n", 1);
  constexpr int of_signals = 128;
  ::_exit(of_signals + signal);
}

}  // namespace

Interrupts::Interrupts() {
  state = kIdle;
  struct sigaction action = {};
  action.sa_handler = interrupt;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;  // a write in progress goes on
  sigaction(SIGINT, &action, &old_);
}

Interrupts::~Interrupts() { sigaction(SIGINT, &old_, nullptr); }

Interrupts::Answer::Answer(const Interrupts&) { state = kAnswering; }
Interrupts::Answer::~Answer() { state = kIdle; }

bool Interrupts::Answer::is_interrupted() const { return state == kInterrupted; }

}  // namespace zoo

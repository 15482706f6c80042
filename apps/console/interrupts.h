#pragma once
// Ctrl-C in a conversation ends an answer, not the program.

#include <csignal>

namespace zoo {

/// While it lives, Ctrl-C (SIGINT) ends the program with exit code 130, as shells have it, except that the
/// first one during an answer is only remembered. Only one object may exist at a time.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  /// An answer is being written while it lives.
  class Answer {
   public:
    explicit Answer(const Interrupts& interrupts);
    ~Answer();
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;

    /// Whether the answer is to end.
    bool is_interrupted() const;
  };

 private:
  struct sigaction old_;
};

}  // namespace zoo

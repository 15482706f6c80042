#pragma once
// Protects a terminal from the control characters of texts that are shown on it.

#include <memory>
#include <streambuf>
#include <string>

namespace zoo {

/// Passes text on to `sink` as printable() shows it. Characters may arrive in pieces.
class PrintableBuffer final : public std::streambuf {
 public:
  explicit PrintableBuffer(std::streambuf& sink) : sink_(sink) {}
  ~PrintableBuffer() override;
  PrintableBuffer(const PrintableBuffer&) = delete;
  PrintableBuffer& operator=(const PrintableBuffer&) = delete;

 protected:
  int_type overflow(int_type byte) override;
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int sync() override { return sink_.pubsync(); }

 private:
  std::streambuf& sink_;
  std::string begun_;  // the first bytes of a character
};

/// While this object lives, std::cout and std::cerr show printable() text if they lead to a terminal: the
/// words of a vocabulary, a model or a file name cannot control it. Files and pipes get every byte unchanged.
/// Our own control sequences therefore do not go through these streams.
class TerminalGuard {
 public:
  TerminalGuard();
  ~TerminalGuard();
  TerminalGuard(const TerminalGuard&) = delete;
  TerminalGuard& operator=(const TerminalGuard&) = delete;

 private:
  std::unique_ptr<PrintableBuffer> out_, err_;  // null: not a terminal
  std::streambuf* plain_out_;
  std::streambuf* plain_err_;
};

}  // namespace zoo

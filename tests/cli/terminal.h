#pragma once
// The program zoo on a terminal: a person types, and sees its output and its errors on one screen.

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "tests/cli/support.h"

namespace zoo::testing {

/// `zoo ARGUMENTS` through a shell, with a pseudo-terminal for all streams that are not redirected.
class TerminalSession {
 public:
  /// `columns`: its width; 0: unknown.
  TerminalSession(const TempDir& dir, const std::string& arguments, unsigned short columns = 0) {
    screen_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (screen_ < 0 || ::grantpt(screen_) != 0 || ::unlockpt(screen_) != 0) std::abort();
    const int terminal = ::open(::ptsname(screen_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios settings{};
    ::tcgetattr(terminal, &settings);
    settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);  // line breaks stay as they are
    settings.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    ::tcsetattr(terminal, TCSANOW, &settings);
    winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    if (columns > 0) ::ioctl(terminal, TIOCSWINSZ, &size);
    const auto command = shell_command(arguments);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setsid();
      ::ioctl(terminal, TIOCSCTTY, 0);
      for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(terminal, stream);
      run_in_shell(dir, command);
    }
    ::close(terminal);
  }
  ~TerminalSession() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      finish();
    }
    ::close(screen_);
  }
  TerminalSession(const TerminalSession&) = delete;
  TerminalSession& operator=(const TerminalSession&) = delete;

  /// "\x04" is Ctrl-D.
  void type(std::string_view text) const {
    EXPECT_EQ(::write(screen_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }

  /// Waits until the screen shows `text` after what was waited for before. Returns what it shows up to there.
  std::string wait_for(std::string_view text) {
    size_t at = shown_.find(text, seen_);
    while (at == shown_.npos && read_some()) at = shown_.find(text, seen_);
    EXPECT_NE(at, shown_.npos) << "the screen shows: " << shown_;
    const size_t begin = std::exchange(seen_, at == shown_.npos ? shown_.size() : at + text.size());
    return shown_.substr(begin, seen_ - begin);
  }

  /// Waits until the screen shows `n` bytes after what was waited for before.
  void wait_for_bytes(size_t n) {
    while (shown_.size() < seen_ + n && read_some()) {
    }
    EXPECT_GE(shown_.size(), seen_ + n) << "the screen shows: " << shown_;
    seen_ += n;
  }

  /// Waits for the end. Outcome::out is everything that was shown.
  Outcome finish() {
    while (read_some()) {
    }
    int status = 0;
    ::waitpid(std::exchange(pid_, 0), &status, 0);
    return {.code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status), .out = shown_, .err = {}};
  }

 private:
  /// Returns false once nothing can come any more. Ends a process that is silent for too long.
  bool read_some() {
    constexpr int patience = 240'000;  // milliseconds
    pollfd waiting{screen_, POLLIN, 0};
    if (::poll(&waiting, 1, patience) <= 0) {
      ::kill(pid_, SIGKILL);
      return false;
    }
    std::array<char, 4096> buffer;
    const auto size = ::read(screen_, buffer.data(), buffer.size());
    if (size <= 0) return false;  // EIO: the process has ended
    shown_.append(buffer.data(), static_cast<size_t>(size));
    return true;
  }

  int screen_ = -1;
  pid_t pid_ = 0;
  std::string shown_;
  size_t seen_ = 0;
};

}  // namespace zoo::testing

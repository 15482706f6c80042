#include "base/process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {
namespace {

std::string reason(int error) { return std::generic_category().message(error); }

int as_exit_code(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

/// The environment of this process after `changes`, as "NAME=value".
std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::string> variables;
  for (const char* const* variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const auto is_changed = [&](const auto& change) { return text.starts_with(change.first + "="); };
    if (std::none_of(changes.begin(), changes.end(), is_changed)) variables.emplace_back(text);
  }
  for (const auto& [name, value] : changes) variables.push_back(fmt::format("{}={}", name, value));
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  for (auto& string : strings) result.push_back(string.data());
  result.push_back(nullptr);
  return result;
}

/// A file without a name, which a child process inherits.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("zoo", MFD_CLOEXEC)) {
    if (fd_ < 0) throw SystemError(fmt::format("cannot make a file in memory: {}", reason(errno)));
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int get() const { return fd_; }

  /// Throws SystemError.
  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t size = ::write(fd_, text.data(), text.size());
      if (size < 0 && errno == EINTR) continue;
      if (size <= 0) throw SystemError(fmt::format("cannot write to memory: {}", reason(errno)));
      text.remove_prefix(static_cast<size_t>(size));
    }
  }

  /// All of it. Throws SystemError.
  std::string read() const {
    std::string text;
    std::array<char, 1 << 16> part;
    for (;;) {
      const ssize_t size = pread(fd_, part.data(), part.size(), static_cast<off_t>(text.size()));
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) throw SystemError(fmt::format("cannot read from memory: {}", reason(errno)));
      if (size == 0) return text;
      text.append(part.data(), static_cast<size_t>(size));
    }
  }

 private:
  int fd_;
};

}  // namespace

ChildProcess::ChildProcess(const ProcessOptions& options) {
  // All memory is allocated before the fork: the child of a process with threads must not allocate.
  auto command = options.command;
  auto environment = environment_with(options.environment);
  const auto arguments = pointers(command), variables = pointers(environment);
  int failure[2];  // a successful exec closes it; otherwise it carries the error
  if (pipe2(failure, O_CLOEXEC) != 0)
    throw SystemError(fmt::format("cannot start '{}': {}", command.front(), reason(errno)));
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);  // the parent died before prctl()
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    if (options.output >= 0) {
      dup2(options.output, STDOUT_FILENO);
      dup2(options.output, STDERR_FILENO);
    }
    if (options.early_stop == EarlyStop::waits) {
      sigset_t stop;
      sigemptyset(&stop);
      sigaddset(&stop, SIGTERM);
      sigprocmask(SIG_BLOCK, &stop, nullptr);  // the mask outlives exec
    }
    if (options.signals == TerminalSignals::to_parent_only) setpgid(0, 0);
    execve(arguments.front(), arguments.data(), variables.data());
    const int error = errno;
    if (write(failure[1], &error, sizeof error) < 0) _exit(1);
    _exit(1);
  }
  const int fork_error = errno;
  close(failure[1]);
  int error = pid_ < 0 ? fork_error : 0;
  const bool failed = pid_ < 0 || read(failure[0], &error, sizeof error) > 0;
  close(failure[0]);
  if (!failed) return;
  if (pid_ > 0) wait();
  throw SystemError(fmt::format("cannot start '{}': {}", command.front(), reason(error)));
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), exit_code_(other.exit_code_) {}

ChildProcess::~ChildProcess() {
  if (pid_ < 0 || exit_code()) return;
  interrupt();
  wait();
}

std::optional<int> ChildProcess::exit_code() {
  int status = 0;
  if (!exit_code_ && waitpid(pid_, &status, WNOHANG) == pid_) exit_code_ = as_exit_code(status);
  return exit_code_;
}

void ChildProcess::interrupt() {
  if (!exit_code_) ::kill(pid_, SIGTERM);
}

void ChildProcess::kill() {
  if (!exit_code_) ::kill(pid_, SIGKILL);
}

int ChildProcess::wait() {
  int status = 0;
  while (!exit_code_) {
    const pid_t ended = waitpid(pid_, &status, 0);
    if (ended == pid_) exit_code_ = as_exit_code(status);
    if (ended < 0 && errno != EINTR) exit_code_ = 1;  // other code has already waited for it
  }
  return *exit_code_;
}

ChildResult run_in_child(const std::function<std::string()>& work) {
  const MemoryFile value, output;
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw SystemError(fmt::format("cannot start a process: {}", reason(errno)));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    // exit() must not run destructors of static objects, which belong to the parent.
    std::atexit([] { _exit(1); });
    const int nothing = open("/dev/null", O_WRONLY);
    dup2(nothing, STDOUT_FILENO);
    dup2(output.get(), STDERR_FILENO);
    try {
      value.write(work());
      _exit(0);
    } catch (const std::exception& error) {
      output.write(error.what());
    } catch (...) {
    }
    _exit(1);
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  ChildResult result{.value = {}, .output = output.read()};
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) result.value = value.read();
  return result;
}

std::filesystem::path this_program() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw SystemError(fmt::format("cannot find this program: {}", error.message()));
  return path;
}

}  // namespace zoo

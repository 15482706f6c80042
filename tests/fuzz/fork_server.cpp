#include "tests/fuzz/fork_server.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iostream>
#include <new>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo::fuzz {
namespace {

constexpr int kBad = 77;             // exit code of a child whose `problem` is set
constexpr unsigned kPatience = 120;  // seconds of the clock for one input, on a machine that is busy

/// What a child tells, also if it dies.
struct Shared {
  int64_t index;  // of the input in work
  int64_t n_accepted;
  double longest_seconds;
  int64_t longest_index;
  int64_t most_bytes, largest_index;
  std::array<char, 512> problem;
};

class SharedMemory {
 public:
  SharedMemory()
      : data_(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw SystemError("no memory to share");
  }
  ~SharedMemory() { ::munmap(data_, sizeof(Shared)); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  Shared& get() { return *static_cast<Shared*>(data_); }

 private:
  void* data_;
};

double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

int64_t peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;
}

#if defined(__SANITIZE_ADDRESS__)
void limit_memory(int64_t) {}  // the sanitizer reserves terabytes
#else
void limit_memory(int64_t bytes) {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlimit limit{.rlim_cur = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + bytes),
                     .rlim_max = RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &limit);
}
#endif

void limit_time(double seconds) {
  const auto whole = static_cast<time_t>(seconds);
  const itimerval timer{
      .it_interval = {},
      .it_value = {whole, static_cast<suseconds_t>(1e6 * (seconds - static_cast<double>(whole)))}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
  ::alarm(kPatience);
}

[[noreturn]] void give_up(Shared& shared, const std::string& problem) {
  const size_t size = std::min(problem.size(), shared.problem.size() - 1);
  std::memcpy(shared.problem.data(), problem.data(), size);
  shared.problem[size] = '\0';
  ::_exit(kBad);
}

/// Whether the input was accepted.
bool handle(const Work& work, int64_t index, Shared& shared) {
  try {
    work(index);
    return true;
  } catch (const Error& error) {
    if (error.exit_code() != 2)
      give_up(shared, fmt::format("exit code {}: {}", error.exit_code(), error.what()));
    if (*error.what() == '\0') give_up(shared, "an error without a message");
    return false;
  } catch (const std::bad_alloc&) {
    give_up(shared, "more memory than allowed (std::bad_alloc)");
  } catch (const std::exception& error) {
    give_up(shared, fmt::format("a foreign exception: {}", error.what()));
  }
}

[[noreturn]] void child(int64_t begin, int64_t end, const Work& work, const Bounds& bounds, Shared& shared) {
  // A library that calls exit() is a finding, too.
  std::atexit([] { ::_exit(1); });
  limit_memory(bounds.bytes);
  const int64_t before = peak_bytes();
  for (int64_t i = begin; i < end; ++i) {
    shared.index = i;
    limit_time(bounds.seconds);
    const double start = processor_seconds();
    shared.n_accepted += handle(work, i, shared) ? 1 : 0;
    if (const double seconds = processor_seconds() - start; seconds > shared.longest_seconds) {
      shared.longest_seconds = seconds;
      shared.longest_index = i;
    }
    if (const int64_t bytes = peak_bytes() - before; bytes > shared.most_bytes) {
      shared.most_bytes = bytes;
      shared.largest_index = i;
    }
  }
  shared.index = end;
  ::_exit(0);
}

std::string problem_of(int status, const Shared& shared, const Bounds& bounds) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == kBad) return shared.problem.data();
  if (WIFEXITED(status)) return fmt::format("the process ended itself with code {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  if (signal == SIGPROF) return fmt::format("more than {} seconds", bounds.seconds);
  if (signal == SIGALRM) return fmt::format("no end within {} seconds of the clock", kPatience);
  return fmt::format("signal {} ({})", signal, ::strsignal(signal));
}

}  // namespace

Report run_all(int64_t n, const Work& work, const Bounds& bounds) {
  SharedMemory memory;
  Shared& shared = memory.get();
  Report report;
  for (int64_t next = 0; next < n && report.failures.size() < bounds.failures; next = shared.index) {
    std::cout.flush();
    const pid_t pid = ::fork();
    if (pid < 0) throw SystemError("no process to fork");
    if (pid == 0) child(next, std::min(n, next + bounds.batch), work, bounds, shared);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    report.failures.push_back({shared.index, problem_of(status, shared, bounds)});
    ++shared.index;
  }
  report.n_inputs = shared.index;
  report.n_accepted = shared.n_accepted;
  report.longest_seconds = shared.longest_seconds;
  report.longest_index = shared.longest_index;
  report.most_bytes = shared.most_bytes;
  report.largest_index = shared.largest_index;
  return report;
}

}  // namespace zoo::fuzz

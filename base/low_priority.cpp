#include "base/low_priority.h"

#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <thread>

namespace zoo {

void run_at_low_priority(const std::function<void()>& task) {
  constexpr int niceness = 5;
  std::exception_ptr problem;
  std::thread thread([&] {
    // On Linux this is a priority of one thread. It does not matter if the system refuses.
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), getpriority(PRIO_PROCESS, 0) + niceness);
    try {
      task();
    } catch (...) {
      problem = std::current_exception();
    }
  });
  thread.join();
  if (problem) std::rethrow_exception(problem);
}

}  // namespace zoo

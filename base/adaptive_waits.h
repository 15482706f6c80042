#pragma once
// How OpenMP's threads wait for each other on a machine that other programs use, too.

#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>

namespace zoo {

/// Decides from measurements whether this process has to queue for processors.
class Contention {
 public:
  /// `queued`: seconds that the threads of this process waited for a processor, for each second that passed.
  /// Call it at regular intervals. Returns whether processors are contended.
  ///
  /// It looks at a moving average, so that another program's few milliseconds are not contention. The
  /// threshold for the end is lower than the one for the beginning, because threads that sleep queue less
  /// than threads that spin.
  bool update(double queued);

  static constexpr double kBegin = 0.25, kEnd = 0.1;
  static constexpr double kWeight = 0.3;  // of the newest interval

 private:
  bool contended_ = false;
  double average_ = 0;
};

/// Seconds that the threads of this process have waited for a processor so far; 0 if the system does not
/// report it. `tasks`: a directory with a directory for each thread, as Linux has it.
double seconds_queued(const std::filesystem::path& tasks = "/proc/self/task");

/// Turns readings of seconds_queued() into the share of the time between them.
class QueuedShare {
 public:
  /// The first reading.
  explicit QueuedShare(double queued) : queued_(queued) {}
  /// `seconds`: since the first reading. `queued`: a later reading. Returns the seconds in the queue for each
  /// second since the previous reading; 0 if their sum has fallen, because a thread that ends takes its time
  /// with it.
  double update(double seconds, double queued);

 private:
  double seconds_ = 0, queued_;
};

/// While it exists, OpenMP's threads sleep at once when they wait for each other on a contended machine. On a
/// quiet machine they go on spinning for some milliseconds, which is faster there.
///
/// A thread that spins uses up the time on a processor for which another thread of its team, or another
/// program, is queueing. With two busy programs on two processors, that costs most of the speed. GCC's
/// runtime takes its number of turns from the environment when it is loaded (GOMP_SPINCOUNT, 300,000). While
/// a process has more OpenMP threads than processors it spins for 100 turns only, as its manual says. This
/// class keeps idle threads that bring this about. It does nothing if OMP_WAIT_POLICY or GOMP_SPINCOUNT is
/// set. Other OpenMP runtimes are not affected.
class AdaptiveWaits {
 public:
  AdaptiveWaits();
  ~AdaptiveWaits();
  AdaptiveWaits(const AdaptiveWaits&) = delete;
  AdaptiveWaits& operator=(const AdaptiveWaits&) = delete;

  /// Whether waits are short now.
  bool are_short() const;

 private:
  class IdleThreads;
  void watch();

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::unique_ptr<IdleThreads> idle_;
  std::thread watch_;
};

}  // namespace zoo

#include "base/adaptive_waits.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/stopwatch.h"
#include "tests/support/environment.h"
#include "tests/support/temp_dir.h"

namespace zoo {
namespace {

/// More threads than processors, all of them busy.
class BusyThreads {
 public:
  BusyThreads() {
    for (unsigned i = 0; i < 3 * std::thread::hardware_concurrency(); ++i) {
      threads_.emplace_back([this] {
        while (!ends_) {
        }
      });
    }
  }
  ~BusyThreads() {
    ends_ = true;
    for (auto& thread : threads_) thread.join();
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

 private:
  std::atomic<bool> ends_ = false;
  std::vector<std::thread> threads_;
};

/// Whether `condition` holds within two minutes.
bool soon(const std::function<bool()>& condition) {
  const Stopwatch clock;
  while (!condition() && clock.seconds() < 120) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

std::ptrdiff_t n_threads_of_this_process() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return std::distance(begin(threads), end(threads));
}

/// The number of intervals with `queued` after which update() returns `contended`; 100 if it never does.
int n_intervals_until(Contention& contention, double queued, bool contended) {
  int n = 1;
  while (contention.update(queued) != contended && n < 100) ++n;
  return n;
}

// What threads that spin and threads that sleep were measured to queue beside one busy program.
constexpr double kSpinning = 0.6, kSleeping = 0.28;

TEST(Contention, BeginsAndEndsWithinASecond) {
  Contention contention;
  EXPECT_LE(n_intervals_until(contention, kSpinning, true), 3);
  EXPECT_LE(n_intervals_until(contention, 0, false), 10);
}

TEST(Contention, LastsWhileSleepingThreadsQueue) {
  Contention contention;
  n_intervals_until(contention, kSpinning, true);
  EXPECT_EQ(n_intervals_until(contention, kSleeping, false), 100);
}

// A little queueing neither begins nor ends it.
TEST(Contention, BeginsAtMoreThanItEndsAt) {
  for (const double little : {0.12, 0.2, 0.24}) {
    Contention quiet, busy;
    EXPECT_EQ(n_intervals_until(quiet, little, true), 100) << little;
    n_intervals_until(busy, kSpinning, true);
    EXPECT_EQ(n_intervals_until(busy, little, false), 100) << little;
    EXPECT_LE(n_intervals_until(busy, 0.05, false), 20) << little;
  }
}

TEST(QueuedShare, IsOfTheTimeThatHasPassed) {
  QueuedShare share(5);
  EXPECT_NEAR(share.update(0.1, 5.05), 0.5, 1e-9);
  EXPECT_NEAR(share.update(0.3, 5.45), 2, 1e-9) << "of several threads";
  EXPECT_EQ(share.update(0.4, 1), 0) << "a thread has ended";
  EXPECT_NEAR(share.update(0.5, 1.01), 0.1, 1e-9);
}

// schedstat: nanoseconds on a processor, nanoseconds in the queue, time slices.
TEST(SecondsQueued, AreTheSecondNumberOfEveryThread) {
  const testing::TempDir dir;
  EXPECT_EQ(seconds_queued(dir / "none"), 0);
  dir.write("12/schedstat", "9000000000 250000000 7\n");
  dir.write("13/schedstat", "1 1500000000 3\n");
  dir.write("14/status", "no schedstat\n");
  EXPECT_DOUBLE_EQ(seconds_queued(dir.path()), 1.75);
}

TEST(Contention, IsNotAProgramThatRunsForAMoment) {
  Contention contention;
  for (int second = 0; second < 10; ++second) {
    EXPECT_FALSE(contention.update(kSpinning));
    for (int i = 1; i < 10; ++i) EXPECT_FALSE(contention.update(0.02));
  }
}

/// Without the user's choices, which AdaptiveWaits would leave alone.
class AdaptiveWaitsTest : public ::testing::Test {
 protected:
  AdaptiveWaitsTest() {
    ::unsetenv("OMP_WAIT_POLICY");
    ::unsetenv("GOMP_SPINCOUNT");
  }

 private:
  // They restore the variables at the end.
  const testing::ScopedEnvironment policy_{"OMP_WAIT_POLICY", ""}, turns_{"GOMP_SPINCOUNT", ""};
};

// That they become long again cannot be tested here: other programs may use the machine, too.
TEST_F(AdaptiveWaitsTest, AreShortWhileThreadsQueueForProcessors) {
  const AdaptiveWaits waits;
  const double before = seconds_queued();
  const BusyThreads others;
  const auto n_threads_before = n_threads_of_this_process();
  EXPECT_TRUE(soon([&] { return waits.are_short(); }));
  EXPECT_GT(seconds_queued(), before);
  // OpenMP only shortens its waits for more threads than processors: at least two must have been added.
  EXPECT_TRUE(soon([&] { return n_threads_of_this_process() >= n_threads_before + 2; }));
}

TEST_F(AdaptiveWaitsTest, LeaveAChoiceOfTheUserAlone) {
  const testing::ScopedEnvironment chosen("GOMP_SPINCOUNT", "1000");
  const AdaptiveWaits waits;
  const BusyThreads others;
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  EXPECT_FALSE(waits.are_short());
}

}  // namespace
}  // namespace zoo

#include "base/adaptive_waits.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/stopwatch.h"
#include "tests/support/environment.h"

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

/// Whether the waits become short within ten seconds.
bool become_short(const AdaptiveWaits& waits) {
  const Stopwatch clock;
  while (!waits.are_short() && clock.seconds() < 10) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return waits.are_short();
}

TEST(Contention, BeginsAtOnceAndEndsAfterSomeCalm) {
  Contention contention;
  EXPECT_FALSE(contention.update(0.0));
  EXPECT_FALSE(contention.update(0.05));
  EXPECT_TRUE(contention.update(0.5));
  for (int i = 1; i < Contention::kCalmIntervals; ++i) EXPECT_TRUE(contention.update(0.0));
  EXPECT_TRUE(contention.update(0.5));  // the calm was too short, and counts from the beginning again
  for (int i = 1; i < Contention::kCalmIntervals; ++i) EXPECT_TRUE(contention.update(0.0));
  EXPECT_FALSE(contention.update(0.0));
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
  EXPECT_TRUE(become_short(waits));
  EXPECT_GT(seconds_queued(), before);
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

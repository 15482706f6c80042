#include "serving/compute_thread.h"

#include <atomic>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace zoo {
namespace {

/// Work in a number of parts, each of which writes the work's name into a common list.
class NamedWork : public Workload {
 public:
  NamedWork(int name, std::vector<int>& done) : name_(name), done_(done) {}

  void give(int n_parts) {
    const std::scoped_lock lock(mutex_);
    waiting_ += n_parts;
  }
  bool has_work() override {
    const std::scoped_lock lock(mutex_);
    return waiting_ > 0;
  }
  void do_part() override {
    done_.push_back(name_);
    const std::scoped_lock lock(mutex_);
    if (--waiting_ == 0) finished.set_value();
  }

  std::promise<void> finished;

 private:
  int name_;
  std::vector<int>& done_;
  std::mutex mutex_;
  int waiting_ = 0;
};

/// Work whose only part lasts until it is told to end.
class HeldWork : public Workload {
 public:
  bool has_work() override { return !begun_.exchange(true); }
  void do_part() override {
    begun.set_value();
    may_end.get_future().wait();
    is_over = true;
  }

  std::promise<void> begun, may_end;
  std::atomic<bool> is_over = false;

 private:
  std::atomic<bool> begun_ = false;
};

TEST(ComputeThread, DoesPartsOfEachWorkInTurns) {
  std::vector<int> done;
  ComputeThread thread;
  NamedWork first(1, done), second(2, done), third(3, done);
  first.give(4);
  second.give(2);
  HeldWork held;  // nothing is done until all works are there
  thread.add(held);
  held.begun.get_future().wait();
  for (auto* const work : {&first, &second, &third}) thread.add(*work);
  held.may_end.set_value();
  for (auto* const work : {&first, &second}) work->finished.get_future().wait();
  thread.remove(held);
  EXPECT_THAT(done, ::testing::UnorderedElementsAre(1, 1, 1, 1, 2, 2));
  EXPECT_THAT(std::vector<int>(done.begin(), done.begin() + 4), ::testing::UnorderedElementsAre(1, 1, 2, 2));
  third.give(1);
  thread.wake();
  third.finished.get_future().wait();
  EXPECT_EQ(done.back(), 3);
  for (auto* const work : {&first, &second, &third}) thread.remove(*work);
}

TEST(ComputeThread, WaitsForThePartOfWorkThatIsRemoved) {
  ComputeThread thread;
  HeldWork held;
  thread.add(held);
  held.begun.get_future().wait();
  std::thread other([&] { held.may_end.set_value(); });
  thread.remove(held);
  EXPECT_TRUE(held.is_over);
  other.join();
}

}  // namespace
}  // namespace zoo

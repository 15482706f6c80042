#include "serving/compute_thread.h"

#include <algorithm>
#include <utility>

namespace zoo {

ComputeThread::ComputeThread() : thread_([this] { run(); }) {}

ComputeThread::~ComputeThread() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void ComputeThread::add(Workload& workload) {
  {
    const std::scoped_lock lock(mutex_);
    workloads_.push_back(&workload);
  }
  wake_.notify_one();
}

void ComputeThread::remove(Workload& workload) {
  std::unique_lock lock(mutex_);
  part_done_.wait(lock, [&] { return current_ != &workload; });
  std::erase(workloads_, &workload);
}

void ComputeThread::wake() {
  // Without the lock, the thread could miss this between its last look and its sleep.
  {
    const std::scoped_lock lock(mutex_);
  }
  wake_.notify_one();
}

void ComputeThread::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stops_ || (current_ = next_with_work()) != nullptr; });
    if (stops_) return;
    lock.unlock();
    current_->do_part();
    lock.lock();
    current_ = nullptr;
    part_done_.notify_all();
  }
}

/// Null if no workload has work.
Workload* ComputeThread::next_with_work() {
  for (size_t i = 0; i < workloads_.size(); ++i) {
    auto* const workload = workloads_[next_++ % workloads_.size()];
    if (workload->has_work()) return workload;
  }
  return nullptr;
}

}  // namespace zoo

#pragma once
// The thread on which all models of a service compute, in turns.

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

namespace zoo {

/// Work that a ComputeThread does in small parts.
class Workload {
 public:
  virtual ~Workload() = default;
  /// Whether a part waits to be done. Called on the compute thread.
  virtual bool has_work() = 0;
  /// Does a part, and throws nothing. Called on the compute thread.
  virtual void do_part() = 0;
};

/// Does parts of several workloads in turns, so that none waits for the end of another.
///
/// One thread computes for all models, because a loop uses all processors in any case. Each thread with
/// parallel loops has an OpenMP team of its own, and GCC's runtime lets the threads of all teams sleep
/// between any two loops once there are more of them than processors.
class ComputeThread {
 public:
  ComputeThread();
  /// The workloads must be removed before.
  ~ComputeThread();
  ComputeThread(const ComputeThread&) = delete;
  ComputeThread& operator=(const ComputeThread&) = delete;

  void add(Workload& workload);
  /// Waits until the workload's part is done. No workload may call it.
  void remove(Workload& workload);
  /// A workload has new work. The caller must not hold a lock that has_work() takes.
  void wake();

 private:
  void run();
  Workload* next_with_work();

  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_, part_done_;
  std::vector<Workload*> workloads_;
  size_t next_ = 0;              // of the workloads, the one whose turn it is
  Workload* current_ = nullptr;  // whose part is being done
  bool stops_ = false;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace zoo

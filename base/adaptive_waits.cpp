#include "base/adaptive_waits.h"

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <system_error>

#include <ATen/Parallel.h>

#include "base/stopwatch.h"

namespace zoo {
namespace {

constexpr auto kInterval = std::chrono::milliseconds(100);

}  // namespace

bool Contention::update(double queued) {
  average_ += kWeight * (queued - average_);
  contended_ = average_ > (contended_ ? kEnd : kBegin);
  return contended_;
}

double seconds_queued(const std::filesystem::path& tasks) {
  double total = 0;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    double on_processor = 0, queued = 0;  // nanoseconds
    if (std::ifstream(task.path() / "schedstat") >> on_processor >> queued) total += queued * 1e-9;
  }
  return total;
}

double QueuedShare::update(double seconds, double queued) {
  const double share = std::max(0.0, queued - queued_) / (seconds - seconds_);
  seconds_ = seconds;
  queued_ = queued;
  return share;
}

/// A team of OpenMP threads that does nothing. With the threads of the team that works they are more than
/// there are processors.
class AdaptiveWaits::IdleThreads {
 public:
  IdleThreads() : first_([this] { form_team(); }) {}
  ~IdleThreads() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    wake_.notify_one();
    first_.join();
  }
  IdleThreads(const IdleThreads&) = delete;
  IdleThreads& operator=(const IdleThreads&) = delete;

 private:
  void form_team() {
    const int n_threads = std::max(2, omp_get_num_procs() - at::get_num_threads() + 2);
#pragma omp parallel num_threads(n_threads)
    {
      // The compiler would drop an empty region, and with it the team.
#pragma omp barrier
    }  // the team stays until the thread that formed it ends
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return ends_; });
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool ends_ = false;
  std::thread first_;
};

AdaptiveWaits::AdaptiveWaits() {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  watch_ = std::thread([this] { watch(); });
}

AdaptiveWaits::~AdaptiveWaits() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  if (watch_.joinable()) watch_.join();
}

bool AdaptiveWaits::are_short() const {
  const std::lock_guard lock(mutex_);
  return idle_ != nullptr;
}

void AdaptiveWaits::watch() {
  Contention contention;
  Stopwatch clock;
  QueuedShare share(seconds_queued());
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kInterval, [this] { return ends_; })) {
    if (contention.update(share.update(clock.seconds(), seconds_queued()))) {
      if (!idle_) idle_ = std::make_unique<IdleThreads>();
    } else {
      idle_.reset();
    }
  }
}

}  // namespace zoo

#include "data/prefetch.h"

#include <future>
#include <mutex>
#include <utility>

#include <ATen/ThreadLocalState.h>

namespace zoo {
namespace {

class PrefetchedBatches final : public BatchSource {
 public:
  explicit PrefetchedBatches(std::unique_ptr<BatchSource> source) : source_(std::move(source)) {}

  int64_t n_batches(int64_t epoch) override {
    const std::scoped_lock lock(mutex_);
    return source_->n_batches(epoch);
  }

  Batch batch(int64_t epoch, int64_t index) override {
    return is_expected(epoch, index) ? next_.get() : make(epoch, index);
  }

  void expect(int64_t epoch, int64_t index) override {
    if (is_expected(epoch, index)) return;
    epoch_ = epoch;
    index_ = index;
    // An earlier batch that nobody wanted is waited for here.
    // The caller's thread-local state goes with it, so that TensorMemory counts the batch.
    next_ = std::async(std::launch::async,
                       at::wrapPropagateTLSState([this, epoch, index] { return make(epoch, index); }));
  }

  void use_share(int64_t index, int64_t n_parts) override {
    const std::scoped_lock lock(mutex_);
    source_->use_share(index, n_parts);
  }

 private:
  bool is_expected(int64_t epoch, int64_t index) const {
    return next_.valid() && epoch == epoch_ && index == index_;
  }

  Batch make(int64_t epoch, int64_t index) {
    const std::scoped_lock lock(mutex_);
    return source_->batch(epoch, index);
  }

  std::unique_ptr<BatchSource> source_;
  std::mutex mutex_;                 // of source_
  int64_t epoch_ = -1, index_ = -1;  // of the batch that next_ makes
  std::future<Batch> next_;          // destroyed first, because its thread uses the other members
};

}  // namespace

std::unique_ptr<BatchSource> prefetched(std::unique_ptr<BatchSource> source) {
  return std::make_unique<PrefetchedBatches>(std::move(source));
}

}  // namespace zoo

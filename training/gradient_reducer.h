#pragma once
// Sums gradients over the processes while the backward pass is still going on.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <torch/types.h>

#include "parallel/process_group.h"

namespace zoo {

struct ReducerOptions {
  /// The reduction of a bucket starts when its last gradient is ready. Small buckets start earlier; large
  /// ones cost less.
  int64_t bucket_bytes = int64_t{25} << 20;
  /// The first bucket is smaller, so that communication starts early.
  int64_t first_bucket_bytes = int64_t{1} << 20;
  /// For each parameter the only process that gets its gradient, or one of the constants below; empty = every
  /// process gets all gradients.
  std::vector<int64_t> owners = {};
  static constexpr int64_t kEvery = -1;  // every process gets the sum
  /// Each process has a parameter of its own there, whose gradient is complete: nothing is summed. Backward
  /// passes then exchange tokens (layers/expert_exchange.h), and the sums begin after them, so that all
  /// processes do both in the same order.
  static constexpr int64_t kOwn = -2;
};

/// Packs gradients into buckets, in the order in which a backward pass makes them, and sums each bucket over
/// the processes as soon as it is full (Li et al. 2020, "PyTorch Distributed", section 3.2). c10d's own
/// Reducer does this for graphs that end in AccumulateGrad; here each of several threads has its own graph.
///
/// Where parameters have owners (shards.h), a bucket holds parameters of one owner, and only this process
/// gets the sum.
class GradientReducer {
 public:
  /// All processes pass equal arguments. `processes` outlives this object.
  GradientReducer(const ProcessGroup& processes, std::vector<torch::Tensor> parameters,
                  const ReducerOptions& options = {});

  /// To be called before the backward pass that completes a step's gradients.
  void begin();
  /// Takes the gradient of parameter `i`, once per step, from any thread; undefined = it has none in this
  /// process.
  void mark_ready(size_t i, const torch::Tensor& gradient);
  /// Waits for all buckets, and gives each parameter the sum over all processes as its gradient. A parameter
  /// gets none if it has none in any process, or if another process owns it.
  void finish();

  int64_t n_buckets() const { return static_cast<int64_t>(buckets_.size()); }

 private:
  struct Bucket {
    int64_t owner;                // as in ReducerOptions
    std::vector<size_t> members;  // parameters
    /// (elements of all members + number of members): the gradients, then for each member the number of
    /// processes in which it has a gradient.
    torch::Tensor values;
    std::atomic<size_t> n_missing = 0;
    std::atomic<bool> lacks_some = false;  // a member has no gradient in this process
    ProcessGroup::Work work = {};
  };
  struct Place {
    size_t bucket;
    torch::Tensor gradient, presence;  // parts of the bucket's values
  };

  void fill_buckets(const ReducerOptions& options);
  void allocate(size_t index);
  void start_complete_buckets();

  const ProcessGroup& processes_;
  std::vector<torch::Tensor> parameters_;
  std::vector<Place> places_;                     // one per parameter
  std::vector<std::unique_ptr<Bucket>> buckets_;  // in the order in which all processes reduce them
  bool waits_for_end_ = false;                    // of the backward pass
  std::mutex starting_;
  size_t n_started_ = 0;
};

}  // namespace zoo

#pragma once
// Gradients summed over the processes while the backward pass is still going on.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <torch/types.h>

#include "training/parallel/process_group.h"

namespace zoo {

struct ReducerOptions {
  /// A bucket is sent as soon as all its gradients are there: small ones can leave early, large ones cost
  /// less.
  int64_t bucket_bytes = int64_t{25} << 20;
  /// The first, which is to leave as soon as there is anything.
  int64_t first_bucket_bytes = int64_t{1} << 20;
  /// The process that alone is to have the gradient, one a parameter; empty = all are to have all.
  std::vector<int64_t> owners = {};
};

/// Packs gradients into buckets, in the order in which a backward pass makes them, and sums each bucket over
/// the processes as soon as it is full (Li et al. 2020, "PyTorch Distributed", section 3.2). c10d's own
/// Reducer does this for graphs that end in AccumulateGrad; here several threads have each a graph of their
/// own.
///
/// Where parameters have owners (shards.h), a bucket holds those of one owner, and is summed there alone.
class GradientReducer {
 public:
  /// All processes give the same. `processes` outlives this object.
  GradientReducer(const ProcessGroup& processes, std::vector<torch::Tensor> parameters,
                  const ReducerOptions& options = {});

  /// Before the backward pass that completes a step's gradients.
  void begin();
  /// The gradient of parameter `i`, once a step, from any thread; undefined = it has none in this process.
  void ready(size_t i, const torch::Tensor& gradient);
  /// Waits for all. Then each parameter has the sum over all processes as its gradient, or none where it has
  /// none in any process, or belongs to another.
  void finish();

  int64_t n_buckets() const { return static_cast<int64_t>(buckets_.size()); }

 private:
  struct Bucket {
    int64_t owner;                // -1 = all
    std::vector<size_t> members;  // parameters
    torch::Tensor
        values;  // (elements of all members + one a member: in how many processes it has a gradient)
    std::atomic<size_t> n_missing = 0;
    ProcessGroup::Pending pending = {};
  };
  struct Place {
    size_t bucket;
    torch::Tensor gradient, presence;  // where they go in the bucket
  };

  void fill_buckets(const ReducerOptions& options);
  void allocate(size_t index);
  void send_complete();

  const ProcessGroup& processes_;
  std::vector<torch::Tensor> parameters_;
  std::vector<Place> places_;                     // one a parameter
  std::vector<std::unique_ptr<Bucket>> buckets_;  // in the order in which all processes send them
  std::mutex sending_;
  size_t n_sent_ = 0;
};

}  // namespace zoo

#pragma once
// Divides the examples of an epoch into batches.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "data/batch_source.h"

namespace zoo {

/// Purposes of the random sequences of an epoch. Sequences with different purposes must differ, and the
/// numbers must stay: they are a part of what a seed means.
enum SequencePurpose : uint64_t {
  kOrderPurpose = 1,
  kBatchesPurpose = 2,
  kOffsetPurpose = 3,
  kMaskingPurpose = 4,
  kAugmentPurpose = 5,
  kInfillingPurpose = 8
};

/// The examples of an epoch in order, cut into batches.
struct EpochPlan {
  std::vector<int64_t> examples;
  std::vector<size_t> cuts;  // batch i is examples[cuts[i]] … examples[cuts[i + 1]]

  int64_t n_batches() const { return static_cast<int64_t>(cuts.size()) - 1; }
  /// Throws std::out_of_range.
  std::span<const int64_t> batch(int64_t index) const;
};

/// Plans epoch `epoch` over examples of the given lengths in tokens. Bucketing shuffles the examples, sorts
/// each stretch of about 100 batches by length, cuts batches, and shuffles the batches.
EpochPlan plan_epoch(std::span<const int64_t> lengths, const BatchOptions& options, int64_t epoch);

/// The most that one batch may hold, but it always holds one sequence.
struct BatchLimits {
  int64_t rows;
  int64_t tokens;  // including padding
};
/// Every one of some sequences of the given lengths once, for using a model on them: batches of similar
/// lengths. The longest come first, so that a lack of memory shows at once and the remaining time is not
/// underestimated. No batches if there are no sequences.
EpochPlan plan_by_length(std::span<const int64_t> lengths, const BatchLimits& most);
/// Calls `use` for each batch of this plan with the numbers of its sequences, and then `on_progress`, which
/// may be empty, with the number of sequences that are done.
void for_each_batch(std::span<const int64_t> lengths, const BatchLimits& most,
                    const std::function<void(std::span<const int64_t> examples)>& use,
                    const std::function<void(int64_t done, int64_t all)>& on_progress);

/// The same options without bucketing, for examples of equal length. Sorting them would gain nothing and
/// would make the order depend on the batch size.
BatchOptions unbucketed(BatchOptions options);

/// The common base of the sources: batches that follow an EpochPlan.
class PlannedBatches : public BatchSource {
 public:
  explicit PlannedBatches(const BatchOptions& options) : options_(options) {}
  int64_t n_batches(int64_t epoch) override { return plan(epoch).n_batches(); }
  Batch batch(int64_t epoch, int64_t index) override { return make(epoch, plan(epoch).batch(index)); }
  void use_share(int64_t index, int64_t n_parts) override { share_ = {.index = index, .n_parts = n_parts}; }

 protected:
  virtual EpochPlan make_plan(int64_t epoch) const = 0;
  virtual Batch make(int64_t epoch, std::span<const int64_t> examples) const = 0;
  const BatchOptions& options() const { return options_; }
  bool shuffled() const { return options_.order == BatchOptions::Order::shuffled; }
  /// The rows of a batch of `n_rows` that the process uses.
  RowRange used_rows(int64_t n_rows) const;

 private:
  const EpochPlan& plan(int64_t epoch);

  BatchOptions options_;
  struct Share {
    int64_t index = 0, n_parts = 1;
  };
  Share share_ = {};
  struct Slot {
    int64_t epoch = -1;
    EpochPlan plan;
  };
  Slot slots_[2];  // two epochs, because callers read both around the end of one
};

}  // namespace zoo

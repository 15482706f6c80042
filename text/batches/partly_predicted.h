#pragma once
// Rows of which some tokens are predicted, and the others are only read.

#include <cstdint>
#include <span>
#include <vector>

#include "data/epoch_plan.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

struct PartlyPredictedRow {
  TokenIds tokens;                 // all but the last one are read
  std::vector<int64_t> predicted;  // ascending indices of tokens, from 1 on
};

/// Each row is read from its beginning. A derived class says the rows and adds those that can be used.
class PartlyPredictedBatches : public PlannedBatches {
 public:
  /// `pad` fills shorter rows.
  PartlyPredictedBatches(int64_t pad, const BatchOptions& options) : PlannedBatches(options), pad_(pad) {}

 protected:
  virtual PartlyPredictedRow row(int64_t number) const = 0;
  /// Whether a token of this row is predicted; only then it becomes an example.
  bool add_row(int64_t number);
  int64_t n_rows() const { return static_cast<int64_t>(numbers_.size()); }

  EpochPlan make_plan(int64_t epoch) const override;
  Batch make(int64_t epoch, std::span<const int64_t> examples) const override;

 private:
  int64_t pad_;
  std::vector<int64_t> numbers_, lengths_;  // of the rows, and as the model reads them
};

}  // namespace zoo

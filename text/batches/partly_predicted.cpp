#include "text/batches/partly_predicted.h"

#include <algorithm>
#include <numeric>

#include <torch/types.h>

#include "text/batches/padded_rows.h"

namespace zoo {

bool PartlyPredictedBatches::add_row(int64_t number) {
  const auto added = row(number);
  if (added.predicted.empty()) return false;
  numbers_.push_back(number);
  lengths_.push_back(std::ssize(added.tokens) - 1);  // nothing follows the last token
  return true;
}

EpochPlan PartlyPredictedBatches::make_plan(int64_t epoch) const {
  return plan_epoch(lengths_, options(), epoch);
}

Batch PartlyPredictedBatches::make(int64_t, std::span<const int64_t> examples) const {
  std::vector<int64_t> lengths, targets, positions;
  for (const int64_t i : examples) lengths.push_back(lengths_[static_cast<size_t>(i)]);
  PaddedRows rows(lengths, pad_);
  for (size_t b = 0; b < examples.size(); ++b) {
    const auto read = row(numbers_[static_cast<size_t>(examples[b])]);
    const auto number = static_cast<int64_t>(b);
    std::copy_n(read.tokens.begin(), lengths[b], rows.row(number));
    for (const int64_t position : read.predicted) {
      targets.push_back(read.tokens[static_cast<size_t>(position)]);
      positions.push_back(number * rows.width() + position - 1);
    }
  }
  Batch batch{.input = rows.batch(), .targets = int64_tensor(targets), .positions = int64_tensor(positions)};
  batch.tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  return batch;
}

}  // namespace zoo

#include "text/batches/token_classification_batches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <torch/types.h>

#include "base/error.h"
#include "base/random.h"
#include "data/epoch_plan.h"
#include "text/batches/padded_rows.h"

namespace zoo {
namespace {

class TokenClassificationBatches : public PlannedBatches {
 public:
  TokenClassificationBatches(std::vector<TokensWithClasses> rows, TextFrame frame, int64_t pad,
                             const BatchOptions& options, const HiddenTokens& hidden)
      : PlannedBatches(options),
        rows_(std::move(rows)),
        frame_(std::move(frame)),
        pad_(pad),
        hidden_(hidden) {
    if (hidden.probability > 0) require_special(hidden.mask, "<mask>", "data.hide_probability");
    if (rows_.empty()) throw DataError("there are no labels that are counted");
    for (const auto& row : rows_) lengths_.push_back(std::ssize(row.ids) + frame_.n_tokens());
  }

 protected:
  EpochPlan make_plan(int64_t epoch) const override { return plan_epoch(lengths_, options(), epoch); }

  Batch make(int64_t epoch, std::span<const int64_t> examples) const override {
    std::vector<const TokensWithClasses*> rows;
    if (hidden_.probability == 0 || !shuffled()) {
      for (const int64_t i : examples) rows.push_back(&rows_[static_cast<size_t>(i)]);
      return token_classification_batch(rows, frame_, pad_);
    }
    std::vector<TokensWithClasses> changed;
    for (const int64_t i : examples) changed.push_back(with_hidden_tokens(epoch, i));
    for (const auto& row : changed) rows.push_back(&row);
    return token_classification_batch(rows, frame_, pad_);
  }

 private:
  TokensWithClasses with_hidden_tokens(int64_t epoch, int64_t example) const {
    CounterRandom random(
        {options().seed, static_cast<uint64_t>(epoch), kMaskingPurpose, static_cast<uint64_t>(example)});
    auto row = rows_[static_cast<size_t>(example)];
    for (auto& id : row.ids) {
      if (random.uniform() < hidden_.probability) id = hidden_.mask;
    }
    return row;
  }

  std::vector<TokensWithClasses> rows_;
  TextFrame frame_;
  int64_t pad_;
  HiddenTokens hidden_;
  std::vector<int64_t> lengths_;  // with the frame
};

}  // namespace

Batch token_classification_batch(const std::vector<const TokensWithClasses*>& rows, const TextFrame& frame,
                                 int64_t pad) {
  std::vector<int64_t> lengths;
  for (const auto* row : rows) lengths.push_back(std::ssize(row->ids) + frame.n_tokens());
  PaddedRows padded(lengths, pad);
  std::vector<int64_t> positions, classes;
  std::vector<float> numbers;
  for (int64_t b = 0; b < std::ssize(rows); ++b) {
    const auto& row = *rows[static_cast<size_t>(b)];
    auto* at = std::ranges::copy(frame.before, padded.row(b)).out;
    at = std::ranges::copy(row.ids, at).out;
    std::ranges::copy(frame.after, at);
    for (const int64_t position : row.positions)
      positions.push_back(b * padded.width() + std::ssize(frame.before) + position);
    classes.insert(classes.end(), row.classes.begin(), row.classes.end());
    numbers.insert(numbers.end(), row.numbers.begin(), row.numbers.end());
  }
  Batch batch;
  batch.input = padded.batch();
  batch.positions = int64_tensor(positions);
  batch.targets =
      numbers.empty() ? int64_tensor(classes) : torch::tensor(numbers).view({std::ssize(positions), -1});
  batch.tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  return batch;
}

std::unique_ptr<BatchSource> token_classification_batches(std::vector<TokensWithClasses> rows,
                                                          TextFrame frame, int64_t pad,
                                                          const BatchOptions& options,
                                                          const HiddenTokens& hidden) {
  return std::make_unique<TokenClassificationBatches>(std::move(rows), std::move(frame), pad, options,
                                                      hidden);
}

}  // namespace zoo

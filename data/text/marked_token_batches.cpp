// Prediction of marked tokens: each row is read from its beginning.

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/epoch_plan.h"
#include "data/text/padded_rows.h"
#include "data/text/text_batches.h"

namespace zoo {
namespace {

/// A row without its marks, and the positions of the tokens that followed them.
struct MarkedRow {
  TokenIds tokens;
  std::vector<int64_t> marked;
};

MarkedRow without_marks(const TokenIds& row, int64_t mark, int64_t most) {
  MarkedRow result;
  bool is_marked = false;
  for (const int64_t token : row) {
    if (token == mark) {
      is_marked = true;
      continue;
    }
    const int64_t position = std::ssize(result.tokens);
    if (position > most) break;
    if (is_marked && position > 0) result.marked.push_back(position);
    is_marked = false;
    result.tokens.push_back(token);
  }
  return result;
}

class MarkedTokenBatches final : public PlannedBatches {
 public:
  MarkedTokenBatches(TokenStore texts, int64_t mark, int64_t length, const SpecialTokens& special,
                     const BatchOptions& options)
      : PlannedBatches(options), texts_(std::move(texts)), mark_(mark), length_(length), special_(special) {
    require_special(special.pad, "<pad>", "marked_tokens");
    for (int64_t i = 0; i < texts_.n_rows(); ++i) {
      const auto row = without_marks(texts_.row(i), mark_, length_);
      if (row.marked.empty()) {
        throw DataError(fmt::format("text {} has no marked token among its first {}: see data.answer_mark",
                                    i + 1, length_ + 1));
      }
      lengths_.push_back(std::ssize(row.tokens) - 1);  // nothing follows the last token
    }
    if (lengths_.empty()) throw DataError("there are no texts");
  }

 protected:
  EpochPlan make_plan(int64_t epoch) const override { return plan_epoch(lengths_, options(), epoch); }

  Batch make(int64_t, std::span<const int64_t> examples) const override {
    std::vector<int64_t> lengths, targets, positions;
    for (const int64_t i : examples) lengths.push_back(lengths_[static_cast<size_t>(i)]);
    PaddedRows rows(lengths, special_.pad);
    for (size_t b = 0; b < examples.size(); ++b) {
      const auto row = without_marks(texts_.row(examples[b]), mark_, length_);
      const auto number = static_cast<int64_t>(b);
      std::copy_n(row.tokens.begin(), lengths[b], rows.row(number));
      for (const int64_t position : row.marked) {
        targets.push_back(row.tokens[static_cast<size_t>(position)]);
        positions.push_back(number * rows.width() + position - 1);
      }
    }
    Batch batch{
        .input = rows.batch(), .targets = int64_tensor(targets), .positions = int64_tensor(positions)};
    batch.tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    return batch;
  }

 private:
  TokenStore texts_;
  int64_t mark_, length_;
  SpecialTokens special_;
  std::vector<int64_t> lengths_;  // of the rows as the model reads them
};

}  // namespace

std::unique_ptr<BatchSource> marked_token_batches(TokenStore texts, int64_t mark, int64_t length,
                                                  const SpecialTokens& special, const BatchOptions& options) {
  return std::make_unique<MarkedTokenBatches>(std::move(texts), mark, length, special, options);
}

}  // namespace zoo

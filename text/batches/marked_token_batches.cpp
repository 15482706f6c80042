// Prediction of marked tokens: each row is read from its beginning.

#include <fmt/format.h>

#include "base/error.h"
#include "text/batches/padded_rows.h"
#include "text/batches/partly_predicted.h"
#include "text/batches/text_batches.h"

namespace zoo {
namespace {

/// A row without its marks; the tokens that followed them are predicted.
PartlyPredictedRow without_marks(const TokenIds& row, int64_t mark, int64_t most) {
  PartlyPredictedRow result;
  bool is_marked = false;
  for (const int64_t token : row) {
    if (token == mark) {
      is_marked = true;
      continue;
    }
    const int64_t position = std::ssize(result.tokens);
    if (position > most) break;
    if (is_marked && position > 0) result.predicted.push_back(position);
    is_marked = false;
    result.tokens.push_back(token);
  }
  return result;
}

class MarkedTokenBatches final : public PartlyPredictedBatches {
 public:
  MarkedTokenBatches(TokenStore texts, int64_t mark, int64_t length, const SpecialTokens& special,
                     const BatchOptions& options)
      : PartlyPredictedBatches(special.pad, options), texts_(std::move(texts)), mark_(mark), length_(length) {
    require_special(special.pad, "<pad>", "marked_tokens");
    for (int64_t i = 0; i < texts_.n_rows(); ++i) {
      if (!add_row(i)) {
        throw DataError(fmt::format("text {} has no marked token among its first {}: see data.answer_mark",
                                    i + 1, length_ + 1));
      }
    }
    if (n_rows() == 0) throw DataError("there are no texts");
  }

 private:
  PartlyPredictedRow row(int64_t number) const override {
    return without_marks(texts_.row(number), mark_, length_);
  }

  TokenStore texts_;
  int64_t mark_, length_;
};

}  // namespace

std::unique_ptr<BatchSource> marked_token_batches(TokenStore texts, int64_t mark, int64_t length,
                                                  const SpecialTokens& special, const BatchOptions& options) {
  return std::make_unique<MarkedTokenBatches>(std::move(texts), mark, length, special, options);
}

}  // namespace zoo

// Prediction of the answers in conversations.

#include <algorithm>

#include "base/error.h"
#include "text/batches/partly_predicted.h"
#include "text/batches/text_batches.h"

namespace zoo {
namespace {

class AnswerBatches final : public PartlyPredictedBatches {
 public:
  AnswerBatches(TokenStore texts, TokenStore answers, int64_t length, const SpecialTokens& special,
                const BatchOptions& options)
      : PartlyPredictedBatches(std::max<int64_t>(special.pad, 0), options),  // rows have lengths
        texts_(std::move(texts)),
        answers_(std::move(answers)),
        length_(length) {
    for (int64_t i = 0; i < texts_.n_rows(); ++i) add_row(i);
    if (n_rows() == 0) {
      throw DataError(
          "no conversation has an answer within data.sequence_length tokens: choose a longer one");
    }
  }

 private:
  PartlyPredictedRow row(int64_t number) const override {
    PartlyPredictedRow result{.tokens = texts_.row(number), .predicted = {}};
    if (std::ssize(result.tokens) > length_ + 1) result.tokens.resize(static_cast<size_t>(length_ + 1));
    const auto answers = answers_.row(number);
    for (size_t i = 0; i + 1 < answers.size(); i += 2) {
      const int64_t end = std::min(answers[i + 1], std::ssize(result.tokens));
      for (int64_t at = std::max<int64_t>(answers[i], 1); at < end; ++at) result.predicted.push_back(at);
    }
    return result;
  }

  TokenStore texts_, answers_;
  int64_t length_;
};

}  // namespace

std::unique_ptr<BatchSource> answer_batches(TokenStore texts, TokenStore answers, int64_t length,
                                            const SpecialTokens& special, const BatchOptions& options) {
  return std::make_unique<AnswerBatches>(std::move(texts), std::move(answers), length, special, options);
}

}  // namespace zoo

// Next-token prediction: windows of one stream.

#include <algorithm>

#include <fmt/format.h>
#include <torch/types.h>

#include "data/epoch_plan.h"
#include "data/random.h"
#include "io/error.h"

namespace zoo {
namespace {

constexpr uint64_t offset_purpose = 3;

class LanguageModelingBatches : public PlannedBatches {
 public:
  LanguageModelingBatches(TokenStore stream, int64_t length, const BatchOptions& options)
      : PlannedBatches(unbucketed(options)), stream_(std::move(stream)) {
    const int64_t predicted = stream_.n_tokens() - 1;  // every token but the first can be predicted
    if (predicted < 1) {
      throw DataError(
          fmt::format("a text of {} tokens is too short for language modelling", stream_.n_tokens()));
    }
    length_ = std::min(length, predicted);
  }

 protected:
  EpochPlan make_plan(int64_t epoch) const override {
    const int64_t predicted = stream_.n_tokens() - 1 - offset(epoch);
    const std::vector<int64_t> lengths(static_cast<size_t>(predicted / length_), length_);
    EpochPlan plan = plan_epoch(lengths, options(), epoch);
    if (!shuffled() && predicted % length_ > 0) {  // the shorter window at the end
      plan.examples.push_back(predicted / length_);
      plan.cuts.push_back(plan.examples.size());
    }
    return plan;
  }

  Batch make(int64_t epoch, std::span<const int64_t> examples) const override {
    const int64_t start = offset(epoch);
    const int64_t last = stream_.n_tokens() - 1;
    const auto rows = static_cast<int64_t>(examples.size());
    // Windows of one batch are equally long: the shorter one at the end has a batch of its own.
    const int64_t width = std::min(length_, last - (start + examples.front() * length_));
    torch::Tensor ids = torch::empty({rows, width}, torch::kInt64);
    torch::Tensor targets = int64_tensor(rows * width);
    for (int64_t b = 0; b < rows; ++b) {
      const int64_t begin = start + examples[static_cast<size_t>(b)] * length_;
      stream_.copy(begin, begin + width, ids.mutable_data_ptr<int64_t>() + b * width);
      stream_.copy(begin + 1, begin + width + 1, targets.mutable_data_ptr<int64_t>() + b * width);
    }
    Batch batch;
    batch.input.ids = ids;
    batch.targets = targets;
    batch.tokens = rows * width;
    return batch;
  }

 private:
  /// Where the first window of an epoch begins: windows are cut at other places each time.
  int64_t offset(int64_t epoch) const {
    if (!shuffled()) return 0;
    const int64_t most =
        std::min(length_ - 1, stream_.n_tokens() - 1 - length_);  // leaves at least one window
    CounterRandom random({options().seed, static_cast<uint64_t>(epoch), offset_purpose});
    return random.below(most + 1);
  }

  TokenStore stream_;
  int64_t length_;
};

}  // namespace

std::unique_ptr<BatchSource> language_modeling_batches(TokenStore stream, int64_t length,
                                                       const BatchOptions& options) {
  return std::make_unique<LanguageModelingBatches>(std::move(stream), length, options);
}

}  // namespace zoo

// Next-token prediction: windows of one stream.

#include <algorithm>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/random.h"
#include "data/epoch_plan.h"
#include "text/batches/padded_rows.h"
#include "text/batches/text_batches.h"

namespace zoo {
namespace {

/// A window is the `length` tokens that are read and the token after them. All of its tokens after the first
/// `prefix` are predicted. Windows overlap so that each token is predicted once.
class Windows : public PlannedBatches {
 public:
  Windows(TokenStore stream, int64_t length, int64_t prefix, const BatchOptions& options)
      : PlannedBatches(unbucketed(options)), stream_(std::move(stream)), prefix_(prefix) {
    if (prefix < 1 || prefix > length) throw std::invalid_argument("a prefix must be a part of its window");
    const int64_t most = stream_.n_tokens() - 1;
    if (most < prefix) {
      throw DataError(fmt::format("a text of {} tokens is too short for language modelling{}",
                                  stream_.n_tokens(),
                                  prefix > 1 ? fmt::format(" after a prefix of {}", prefix) : ""));
    }
    length_ = std::min(length, most);
    stride_ = length_ - prefix_ + 1;
  }

 protected:
  EpochPlan make_plan(int64_t epoch) const override {
    const int64_t predicted = stream_.n_tokens() - prefix_ - offset(epoch);
    const std::vector<int64_t> lengths(static_cast<size_t>(predicted / stride_), length_);
    EpochPlan plan = plan_epoch(lengths, options(), epoch);
    if (!shuffled() && predicted % stride_ > 0) {  // the shorter window at the end
      plan.examples.push_back(predicted / stride_);
      plan.cuts.push_back(plan.examples.size());
    }
    return plan;
  }

  Batch make(int64_t epoch, std::span<const int64_t> examples) const override {
    std::vector<int64_t> begins;
    for (const int64_t example : examples) begins.push_back(offset(epoch) + example * stride_);
    // All windows of a batch are equally long: the shorter one at the end is a batch of its own.
    const int64_t width = std::min(length_, stream_.n_tokens() - 1 - begins.front());
    return make(epoch, begins, width);
  }

  /// The batch of the windows that begin at `begins` and read `width` tokens.
  virtual Batch make(int64_t epoch, const std::vector<int64_t>& begins, int64_t width) const = 0;

  /// `n` tokens of each window, from its token `from` on, one row after the other: (B·n).
  torch::Tensor rows(const std::vector<int64_t>& begins, int64_t from, int64_t n) const {
    torch::Tensor ids = int64_tensor(static_cast<int64_t>(begins.size()) * n);
    int64_t* row = ids.mutable_data_ptr<int64_t>();
    for (const int64_t begin : begins) {
      stream_.copy(begin + from, begin + from + n, row);
      row += n;
    }
    return ids;
  }
  int64_t prefix() const { return prefix_; }
  const TokenStore& stream() const { return stream_; }

 private:
  /// Where the first window of an epoch begins. Each epoch cuts the windows at other places.
  int64_t offset(int64_t epoch) const {
    if (!shuffled()) return 0;
    // At least one window must remain.
    const int64_t most = std::min(stride_ - 1, stream_.n_tokens() - 1 - length_);
    CounterRandom random({options().seed, static_cast<uint64_t>(epoch), kOffsetPurpose});
    return random.below(most + 1);
  }

  TokenStore stream_;
  int64_t length_ = 0, prefix_, stride_ = 0;
};

/// A decoder reads the window and predicts each of its tokens after the prefix.
class DecoderWindows final : public Windows {
 public:
  DecoderWindows(TokenStore stream, int64_t length, int64_t prefix, const BatchOptions& options,
                 const Infilling& infilling)
      : Windows(std::move(stream), length, prefix, options), infilling_(infilling) {}

 private:
  using Windows::make;
  Batch make(int64_t epoch, const std::vector<int64_t>& begins, int64_t width) const override {
    const auto n_rows = static_cast<int64_t>(begins.size());
    const int64_t first = prefix() - 1, n = width - first;  // the positions that predict
    Batch batch;
    if (infilling_.shares.documents > 0) {
      const auto windows = infilled(epoch, begins, width + 1).view({n_rows, width + 1});
      batch.input.ids = windows.narrow(1, 0, width).contiguous();
      batch.targets = windows.narrow(1, prefix(), n).reshape({-1});
    } else {
      batch.input.ids = rows(begins, 0, width).view({n_rows, width});
      batch.targets = rows(begins, prefix(), n);
    }
    if (first > 0) {
      const auto columns = torch::arange(first, width);
      batch.positions = (torch::arange(n_rows).unsqueeze(1) * width + columns).reshape({-1});
    }
    batch.tokens = n_rows * width;
    return batch;
  }

  /// The first `n` tokens of each window as copy_infilled() gives them, one row after the other: (B·n).
  torch::Tensor infilled(int64_t epoch, const std::vector<int64_t>& begins, int64_t n) const {
    torch::Tensor ids = int64_tensor(static_cast<int64_t>(begins.size()) * n);
    int64_t* row = ids.mutable_data_ptr<int64_t>();
    for (const int64_t begin : begins) {
      copy_infilled(stream(), infilling_, {.seed = options().seed, .epoch = shuffled() ? epoch : 0}, begin,
                    std::span(row, static_cast<size_t>(n)));
      row += n;
    }
    return ids;
  }

  Infilling infilling_;
};

/// The encoder reads the prefix and eos. The decoder reads bos and the tokens after the prefix.
class PrefixWindows final : public Windows {
 public:
  PrefixWindows(TokenStore stream, int64_t length, int64_t prefix, const SpecialTokens& special,
                const BatchOptions& options)
      : Windows(std::move(stream), length, prefix, options), special_(special) {
    require_special(special.bos, "<bos>", "language_modeling by an encoder_decoder");
    require_special(special.eos, "<eos>", "language_modeling by an encoder_decoder");
  }

 private:
  using Windows::make;
  Batch make(int64_t /*epoch*/, const std::vector<int64_t>& begins, int64_t width) const override {
    const auto n_rows = static_cast<int64_t>(begins.size());
    const int64_t n = width - prefix() + 1;
    const auto column = [&](int64_t token) { return torch::full({n_rows, 1}, token, torch::kInt64); };
    Batch batch;
    batch.input.ids =
        torch::cat({rows(begins, 0, prefix()).view({n_rows, prefix()}), column(special_.eos)}, 1);
    batch.targets = rows(begins, prefix(), n);
    batch.decoder.ids =
        torch::cat({column(special_.bos), batch.targets.view({n_rows, n}).narrow(1, 0, n - 1)}, 1);
    batch.tokens = n_rows * (prefix() + 1 + n);
    return batch;
  }

  SpecialTokens special_;
};

}  // namespace

std::unique_ptr<BatchSource> language_modeling_batches(TokenStore stream, int64_t length,
                                                       int64_t prefix_length, const BatchOptions& options,
                                                       const Infilling& infilling) {
  return std::make_unique<DecoderWindows>(std::move(stream), length, prefix_length, options, infilling);
}

std::unique_ptr<BatchSource> prefix_language_modeling_batches(TokenStore stream, int64_t length,
                                                              int64_t prefix_length,
                                                              const SpecialTokens& special,
                                                              const BatchOptions& options) {
  return std::make_unique<PrefixWindows>(std::move(stream), length, prefix_length, special, options);
}

}  // namespace zoo

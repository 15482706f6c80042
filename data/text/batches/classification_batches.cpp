// One label for each text, or for each pair of texts.

#include <algorithm>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/epoch_plan.h"
#include "data/text/batches/padded_rows.h"
#include "data/text/batches/text_batches.h"

namespace zoo {

std::pair<int64_t, int64_t> cut_longest_first(int64_t first, int64_t second, int64_t most) {
  if (first + second <= most) return {first, second};
  const auto [shorter, longer] = std::minmax(first, second);
  // The shorter one stays whole if it takes no more than half of the room; else both get half. An odd token
  // goes to the longer text, or to the second of two that are equal.
  const int64_t of_shorter = std::min(shorter, most / 2), of_longer = most - of_shorter;
  if (first <= second) return {of_shorter, of_longer};
  return {of_longer, of_shorter};
}

FramedPair frame_pair(const TokenIds& first, const TokenIds& second, int64_t length, const TextFrame& frame) {
  const int64_t n_special = frame.n_tokens_of_pair();
  if (length < n_special) throw std::invalid_argument("a pair must have room for its special tokens");
  const auto [n_first, n_second] =
      cut_longest_first(std::ssize(first), std::ssize(second), length - n_special);
  FramedPair pair;
  pair.ids.reserve(static_cast<size_t>(n_first + n_second + n_special));
  const auto append = [&](const TokenIds& ids, int64_t count) {
    pair.ids.insert(pair.ids.end(), ids.begin(), ids.begin() + count);
  };
  append(frame.before, std::ssize(frame.before));
  append(first, n_first);
  append(frame.between, std::ssize(frame.between));
  pair.segments.assign(pair.ids.size(), 0);
  append(second, n_second);
  append(frame.after, std::ssize(frame.after));
  pair.segments.resize(pair.ids.size(), frame.second_segment);
  return pair;
}

namespace {

/// What stands around a text if the vocabulary does not say it.
TextFrame usual_frame(ClassPosition position, const SpecialTokens& special) {
  if (position == ClassPosition::first) {
    require_special(special.cls, "<cls>", "text_classification with an encoder");
    require_special(special.sep, "<sep>", "text_classification with an encoder");
    return {.before = {special.cls}, .between = {}, .after = {special.sep}};
  }
  require_special(special.eos, "<eos>", "text_classification with a decoder");
  return {.before = {}, .between = {}, .after = {special.eos}};
}

class ClassificationBatches : public PlannedBatches {
 public:
  ClassificationBatches(TokenStore texts, std::vector<int64_t> labels, int64_t length, ClassPosition position,
                        const SpecialTokens& special, const BatchOptions& options,
                        const std::optional<TextFrame>& frame)
      : PlannedBatches(options),
        texts_(std::move(texts)),
        labels_(std::move(labels)),
        position_(position),
        pad_(special.pad),
        frame_(frame ? *frame : usual_frame(position, special)) {
    // The last token of a row sees no padding, so any token will do.
    if (pad_ < 0 && position == ClassPosition::last) pad_ = std::max<int64_t>(special.eos, 0);
    require_special(pad_, "<pad>", "text_classification");
    const int64_t added = std::ssize(frame_.before) + std::ssize(frame_.after);
    if (length < std::max<int64_t>(added, 1))
      throw std::invalid_argument("sequences must have room for their special tokens");
    if (texts_.n_rows() != static_cast<int64_t>(labels_.size())) {
      throw DataError(
          fmt::format("{} texts but {} labels: the numbers must be equal", texts_.n_rows(), labels_.size()));
    }
    // A row has a token at least, also if nothing stands around an empty text.
    for (int64_t i = 0; i < texts_.n_rows(); ++i)
      lengths_.push_back(std::clamp<int64_t>(texts_.row_length(i) + added, 1, length));
    if (lengths_.empty()) throw DataError("there are no texts to classify");
  }

 protected:
  EpochPlan make_plan(int64_t epoch) const override { return plan_epoch(lengths_, options(), epoch); }

  Batch make(int64_t, std::span<const int64_t> examples) const override {
    std::vector<int64_t> lengths;
    for (const int64_t i : examples) lengths.push_back(lengths_[static_cast<size_t>(i)]);
    PaddedRows rows(lengths, pad_);
    const auto n = static_cast<int64_t>(examples.size());
    const bool first = position_ == ClassPosition::first;
    Batch batch;
    batch.targets = int64_tensor(n);
    if (!first) batch.positions = int64_tensor(n);
    for (int64_t b = 0; b < n; ++b) {
      const int64_t example = examples[static_cast<size_t>(b)];
      const int64_t length = lengths[static_cast<size_t>(b)];
      const int64_t begin = texts_.row_begin(example);
      int64_t* const row = rows.row(b);
      const int64_t n_before = std::ssize(frame_.before);
      const int64_t n_text =
          std::min(length - n_before - std::ssize(frame_.after), texts_.row_length(example));
      std::fill_n(row, length, pad_);
      std::ranges::copy(frame_.before, row);
      texts_.copy(begin, begin + n_text, row + n_before);
      std::ranges::copy(frame_.after, row + n_before + n_text);
      if (!first) batch.positions.mutable_data_ptr<int64_t>()[b] = b * rows.width() + length - 1;
      batch.targets.mutable_data_ptr<int64_t>()[b] = labels_[static_cast<size_t>(example)];
    }
    batch.input = rows.batch();
    batch.tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    return batch;
  }

 private:
  TokenStore texts_;
  std::vector<int64_t> labels_;
  std::vector<int64_t> lengths_;  // as the model sees them
  ClassPosition position_;
  int64_t pad_;
  TextFrame frame_;
};

class PairClassificationBatches : public PlannedBatches {
 public:
  PairClassificationBatches(TokenStore first, TokenStore second, std::vector<int64_t> labels, int64_t length,
                            TextFrame frame, int64_t pad, const BatchOptions& options)
      : PlannedBatches(options),
        first_(std::move(first)),
        second_(std::move(second)),
        labels_(std::move(labels)),
        longest_(length),
        frame_(std::move(frame)),
        pad_(pad) {
    require_special(pad, "<pad>", "text_classification");
    const int64_t n_special = frame_.n_tokens_of_pair();
    if (length < n_special) throw std::invalid_argument("pairs must have room for their special tokens");
    if (first_.n_rows() != second_.n_rows() || first_.n_rows() != std::ssize(labels_)) {
      throw DataError(fmt::format("{} and {} texts but {} labels: the numbers must be equal", first_.n_rows(),
                                  second_.n_rows(), labels_.size()));
    }
    for (int64_t i = 0; i < first_.n_rows(); ++i)
      lengths_.push_back(std::min(first_.row_length(i) + second_.row_length(i) + n_special, length));
    if (lengths_.empty()) throw DataError("there are no texts to classify");
  }

 protected:
  EpochPlan make_plan(int64_t epoch) const override { return plan_epoch(lengths_, options(), epoch); }

  Batch make(int64_t, std::span<const int64_t> examples) const override {
    std::vector<int64_t> lengths;
    for (const int64_t i : examples) lengths.push_back(lengths_[static_cast<size_t>(i)]);
    PaddedRows rows(lengths, pad_), segments(lengths, 0);
    Batch batch;
    batch.targets = int64_tensor(std::ssize(examples));
    for (int64_t b = 0; b < std::ssize(examples); ++b) {
      const int64_t example = examples[static_cast<size_t>(b)];
      const auto pair = frame_pair(first_.row(example), second_.row(example), longest_, frame_);
      std::ranges::copy(pair.ids, rows.row(b));
      std::ranges::copy(pair.segments, segments.row(b));
      batch.targets.mutable_data_ptr<int64_t>()[b] = labels_[static_cast<size_t>(example)];
    }
    batch.input = rows.batch();
    batch.segments = segments.batch().ids;
    batch.tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    return batch;
  }

 private:
  TokenStore first_, second_;
  std::vector<int64_t> labels_;
  std::vector<int64_t> lengths_;  // as the model sees them
  int64_t longest_;
  TextFrame frame_;
  int64_t pad_;
};

}  // namespace

std::unique_ptr<BatchSource> classification_batches(TokenStore texts, std::vector<int64_t> labels,
                                                    int64_t length, ClassPosition position,
                                                    const SpecialTokens& special, const BatchOptions& options,
                                                    const std::optional<TextFrame>& frame) {
  return std::make_unique<ClassificationBatches>(std::move(texts), std::move(labels), length, position,
                                                 special, options, frame);
}

std::unique_ptr<BatchSource> pair_classification_batches(TokenStore first, TokenStore second,
                                                         std::vector<int64_t> labels, int64_t length,
                                                         TextFrame frame, int64_t pad,
                                                         const BatchOptions& options) {
  return std::make_unique<PairClassificationBatches>(std::move(first), std::move(second), std::move(labels),
                                                     length, std::move(frame), pad, options);
}

}  // namespace zoo

// One label for each text, or for each pair of texts.

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/epoch_plan.h"
#include "text/batches/padded_rows.h"
#include "text/batches/text_batches.h"

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
  const auto append = [&](std::span<const int64_t> ids) {
    pair.ids.insert(pair.ids.end(), ids.begin(), ids.end());
  };
  append(frame.before);
  append(frame.kept(first, n_first));
  append(frame.between);
  pair.segments.assign(pair.ids.size(), 0);
  append(frame.kept(second, n_second));
  append(frame.after);
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

/// What fills shorter rows. The last token of a row sees no padding, so any token will do there.
int64_t padding(ClassPosition position, int64_t pad, int64_t end) {
  return pad < 0 && position == ClassPosition::last ? std::max<int64_t>(end, 0) : pad;
}

/// What both kinds of rows have: targets, a frame, lengths.
struct ClassifiedRows {
  torch::Tensor targets;  // (N) or (N, C)
  int64_t longest;        // tokens of a row
  ClassPosition position;
  TextFrame frame;
  int64_t pad;
  int64_t not_read;  // a token that no class is told from, as transformers' decoders take padding; -1: none
};

class ClassificationBatches : public PlannedBatches {
 public:
  /// lengths: as the model sees the rows.
  ClassificationBatches(ClassifiedRows rows, std::vector<int64_t> lengths, const BatchOptions& options)
      : PlannedBatches(options), rows_(std::move(rows)), lengths_(std::move(lengths)) {
    require_special(rows_.pad, "<pad>", "text_classification");
    if (lengths_.empty()) throw DataError("there are no texts to classify");
  }

 protected:
  EpochPlan make_plan(int64_t epoch) const override { return plan_epoch(lengths_, options(), epoch); }

  Batch make(int64_t, std::span<const int64_t> examples) const override {
    std::vector<int64_t> lengths;
    for (const int64_t i : examples) lengths.push_back(lengths_[static_cast<size_t>(i)]);
    PaddedRows rows(lengths, rows_.pad);
    const auto n = std::ssize(examples);
    Batch batch;
    batch.targets = rows_.targets.index_select(0, int64_tensor(examples));
    if (rows_.position == ClassPosition::last) batch.positions = int64_tensor(n);
    for (int64_t b = 0; b < n; ++b) {
      const int64_t length = lengths[static_cast<size_t>(b)];
      write(examples[static_cast<size_t>(b)], length, rows.row(b));
      if (batch.positions.defined())
        batch.positions.mutable_data_ptr<int64_t>()[b] =
            b * rows.width() + place_of_class(rows.row(b), length);
    }
    batch.input = rows.batch();
    batch.segments = segments_of(examples, lengths);
    batch.tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    return batch;
  }

  const ClassifiedRows& rows() const { return rows_; }

 private:
  /// The last token of a row but padding, which can also be a token of the text or of its frame.
  int64_t place_of_class(const int64_t* row, int64_t length) const {
    while (length > 1 && row[length - 1] == rows_.not_read) --length;
    return length - 1;
  }
  /// Writes the tokens of a row.
  virtual void write(int64_t example, int64_t length, int64_t* row) const = 0;
  /// Undefined: all are 0.
  virtual torch::Tensor segments_of(std::span<const int64_t> /*examples*/,
                                    const std::vector<int64_t>& /*lengths*/) const {
    return {};
  }

  ClassifiedRows rows_;
  std::vector<int64_t> lengths_;
};

class FramedTextBatches final : public ClassificationBatches {
 public:
  FramedTextBatches(TokenStore texts, ClassifiedRows rows, std::vector<int64_t> lengths,
                    const BatchOptions& options)
      : ClassificationBatches(std::move(rows), std::move(lengths), options), texts_(std::move(texts)) {}

 private:
  void write(int64_t example, int64_t length, int64_t* row) const override {
    const auto& frame = rows().frame;
    const int64_t n_all = texts_.row_length(example), n_before = std::ssize(frame.before);
    const int64_t n_text = std::min(length - n_before - std::ssize(frame.after), n_all);
    const int64_t begin = texts_.row_begin(example) + (frame.cut_at == TextEnd::left ? n_all - n_text : 0);
    std::fill_n(row, length, rows().pad);
    std::ranges::copy(frame.before, row);
    texts_.copy(begin, begin + n_text, row + n_before);
    std::ranges::copy(frame.after, row + n_before + n_text);
  }

  TokenStore texts_;
};

class FramedPairBatches final : public ClassificationBatches {
 public:
  FramedPairBatches(TokenStore first, TokenStore second, ClassifiedRows rows, std::vector<int64_t> lengths,
                    const BatchOptions& options)
      : ClassificationBatches(std::move(rows), std::move(lengths), options),
        first_(std::move(first)),
        second_(std::move(second)) {}

 private:
  FramedPair pair(int64_t example) const {
    return frame_pair(first_.row(example), second_.row(example), rows().longest, rows().frame);
  }
  void write(int64_t example, int64_t length, int64_t* row) const override {
    std::fill_n(row, length, rows().pad);
    std::ranges::copy(pair(example).ids, row);
  }
  torch::Tensor segments_of(std::span<const int64_t> examples,
                            const std::vector<int64_t>& lengths) const override {
    if (rows().frame.second_segment == 0) return {};
    PaddedRows segments(lengths, 0);
    for (int64_t b = 0; b < std::ssize(examples); ++b)
      std::ranges::copy(pair(examples[static_cast<size_t>(b)]).segments, segments.row(b));
    return segments.batch().ids;
  }

  TokenStore first_, second_;
};

}  // namespace

std::unique_ptr<BatchSource> classification_batches(TokenStore texts, torch::Tensor targets, int64_t length,
                                                    ClassPosition position, const SpecialTokens& special,
                                                    const BatchOptions& options,
                                                    const std::optional<TextFrame>& frame) {
  ClassifiedRows rows{.targets = std::move(targets),
                      .longest = length,
                      .position = position,
                      .frame = frame ? *frame : usual_frame(position, special),
                      .pad = padding(position, special.pad, special.eos),
                      .not_read = special.pad};
  const int64_t added = rows.frame.n_tokens();
  if (length < std::max<int64_t>(added, 1))
    throw std::invalid_argument("sequences must have room for their special tokens");
  if (texts.n_rows() != rows.targets.size(0)) {
    throw DataError(fmt::format("{} texts but {} labels: the numbers must be equal", texts.n_rows(),
                                rows.targets.size(0)));
  }
  // A row has a token at least, also if nothing stands around an empty text.
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < texts.n_rows(); ++i)
    lengths.push_back(std::clamp<int64_t>(texts.row_length(i) + added, 1, length));
  return std::make_unique<FramedTextBatches>(std::move(texts), std::move(rows), std::move(lengths), options);
}

std::unique_ptr<BatchSource> pair_classification_batches(TokenStore first, TokenStore second,
                                                         torch::Tensor targets, int64_t length,
                                                         ClassPosition position, TextFrame frame, int64_t pad,
                                                         const BatchOptions& options) {
  const int64_t n_special = frame.n_tokens_of_pair();
  if (length < std::max<int64_t>(n_special, 1))
    throw std::invalid_argument("pairs must have room for their special tokens");
  if (first.n_rows() != second.n_rows() || first.n_rows() != targets.size(0)) {
    throw DataError(fmt::format("{} and {} texts but {} labels: the numbers must be equal", first.n_rows(),
                                second.n_rows(), targets.size(0)));
  }
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < first.n_rows(); ++i) {
    lengths.push_back(std::clamp<int64_t>(first.row_length(i) + second.row_length(i) + n_special, 1, length));
  }
  ClassifiedRows rows{.targets = std::move(targets),
                      .longest = length,
                      .position = position,
                      .frame = std::move(frame),
                      .pad = padding(position, pad, /*end=*/0),
                      .not_read = pad};
  return std::make_unique<FramedPairBatches>(std::move(first), std::move(second), std::move(rows),
                                             std::move(lengths), options);
}

}  // namespace zoo

// Pairs of sequences with teacher forcing, for an encoder-decoder or a decoder alone.

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "data/epoch_plan.h"
#include "text/batches/padded_rows.h"
#include "text/batches/teacher_forcing.h"
#include "text/batches/text_batches.h"

namespace zoo {
namespace {

class PairBatches : public PlannedBatches {
 public:
  PairBatches(TokenStore source, TokenStore target, int64_t source_length, int64_t target_length,
              const SpecialTokens& special, const BatchOptions& options)
      : PlannedBatches(options),
        source_(std::move(source)),
        target_(std::move(target)),
        source_length_(source_length),
        target_length_(target_length),
        special_(special) {
    require_special(special.pad, "<pad>", "text_to_text");
    require_special(special.eos, "<eos>", "text_to_text");
    if (source_length < 1 || target_length < 1)
      throw std::invalid_argument("sequences must have at least one token");
    if (source_.n_rows() != target_.n_rows()) {
      throw DataError(fmt::format("{} sources but {} targets: the numbers must be equal", source_.n_rows(),
                                  target_.n_rows()));
    }
    if (source_.n_rows() == 0) throw DataError("there are no pairs to translate");
  }

 protected:
  EpochPlan make_plan(int64_t epoch) const override {
    std::vector<int64_t> lengths;
    for (int64_t i = 0; i < source_.n_rows(); ++i) lengths.push_back(longest_sequence(i));
    return plan_epoch(lengths, options(), epoch);
  }
  /// The length of the longest sequence that pair `i` gives.
  virtual int64_t longest_sequence(int64_t i) const = 0;

  // Lengths as the model sees them: cut, and including eos or bos.
  int64_t source_tokens(int64_t i) const { return std::min(source_.row_length(i) + 1, source_length_); }
  int64_t target_tokens(int64_t i) const { return std::min(target_.row_length(i) + 1, target_length_); }

  /// Copies source_tokens(i) ids: the source and eos.
  void copy_source(int64_t i, int64_t* to) const {
    const int64_t from = source_.row_begin(i), words = source_tokens(i) - 1;
    source_.copy(from, from + words, to);
    to[words] = special_.eos;
  }
  /// Copies target_tokens(i) - 1 ids: the target without eos.
  void copy_target(int64_t i, int64_t* to) const {
    const int64_t from = target_.row_begin(i);
    target_.copy(from, from + target_tokens(i) - 1, to);
  }
  /// The targets of a batch, without eos.
  std::vector<TokenIds> targets_of(std::span<const int64_t> examples) const {
    std::vector<TokenIds> result;
    for (const int64_t i : examples) {
      auto& target = result.emplace_back(static_cast<size_t>(target_tokens(i) - 1));
      copy_target(i, target.data());
    }
    return result;
  }
  /// All targets of a batch, one after the other, each with eos.
  torch::Tensor targets(std::span<const int64_t> examples) const {
    int64_t n = 0;
    for (const int64_t i : examples) n += target_tokens(i);
    torch::Tensor result = int64_tensor(n);
    int64_t* to = result.mutable_data_ptr<int64_t>();
    for (const int64_t i : examples) {
      copy_target(i, to);
      to += target_tokens(i);
      to[-1] = special_.eos;
    }
    return result;
  }
  const SpecialTokens& special() const { return special_; }

 private:
  TokenStore source_, target_;
  int64_t source_length_, target_length_;
  SpecialTokens special_;
};

class TwoSides final : public PairBatches {
 public:
  TwoSides(TokenStore source, TokenStore target, int64_t source_length, int64_t target_length,
           const SpecialTokens& special, const BatchOptions& options)
      : PairBatches(std::move(source), std::move(target), source_length, target_length, special, options) {
    require_teacher_forcing(special, "text_to_text");
  }

 private:
  int64_t longest_sequence(int64_t i) const override { return std::max(source_tokens(i), target_tokens(i)); }

  Batch make(int64_t, std::span<const int64_t> examples) const override {
    std::vector<int64_t> source_lengths;
    for (const int64_t i : examples) source_lengths.push_back(source_tokens(i));
    PaddedRows source(source_lengths, special().pad);
    for (size_t b = 0; b < examples.size(); ++b)
      copy_source(examples[b], source.row(static_cast<int64_t>(b)));
    Batch batch;
    batch.input = source.batch();
    add_teacher_forcing(batch, targets_of(examples), special());
    batch.tokens =
        batch.targets.numel() + std::accumulate(source_lengths.begin(), source_lengths.end(), int64_t{0});
    return batch;
  }
};

class OneStream final : public PairBatches {
 public:
  using PairBatches::PairBatches;

 private:
  // The target's last token predicts eos, so eos is not read.
  int64_t longest_sequence(int64_t i) const override { return source_tokens(i) + target_tokens(i) - 1; }

  Batch make(int64_t, std::span<const int64_t> examples) const override {
    std::vector<int64_t> lengths, firsts, counts;
    for (const int64_t i : examples) {
      lengths.push_back(longest_sequence(i));
      firsts.push_back(source_tokens(i) - 1);
      counts.push_back(target_tokens(i));
    }
    PaddedRows stream(lengths, special().pad);
    for (size_t b = 0; b < examples.size(); ++b) {
      int64_t* const row = stream.row(static_cast<int64_t>(b));
      copy_source(examples[b], row);
      copy_target(examples[b], row + source_tokens(examples[b]));
    }
    Batch batch;
    batch.input = stream.batch();
    batch.targets = targets(examples);
    batch.positions = flat_positions(firsts, counts, stream.width());
    batch.tokens = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    return batch;
  }
};

}  // namespace

std::unique_ptr<BatchSource> text_to_text_batches(TokenStore source, TokenStore target, int64_t source_length,
                                                  int64_t target_length, PairLayout layout,
                                                  const SpecialTokens& special, const BatchOptions& options) {
  if (layout == PairLayout::one_stream) {
    return std::make_unique<OneStream>(std::move(source), std::move(target), source_length, target_length,
                                       special, options);
  }
  return std::make_unique<TwoSides>(std::move(source), std::move(target), source_length, target_length,
                                    special, options);
}

}  // namespace zoo

// Pairs of sequences for an encoder-decoder, with teacher forcing.

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <torch/types.h>

#include "data/epoch_plan.h"
#include "io/error.h"

namespace zoo {
namespace {

class TextToTextBatches : public PlannedBatches {
 public:
  TextToTextBatches(TokenStore source, TokenStore target, int64_t source_length, int64_t target_length,
                    const SpecialTokens& special, const BatchOptions& options)
      : PlannedBatches(options),
        source_(std::move(source)),
        target_(std::move(target)),
        source_length_(source_length),
        target_length_(target_length),
        special_(special) {
    require_special(special.pad, "<pad>", "text_to_text");
    require_special(special.bos, "<bos>", "text_to_text");
    require_special(special.eos, "<eos>", "text_to_text");
    if (source_length < 1 || target_length < 1)
      throw std::invalid_argument("sequences have at least one token");
    if (source_.n_rows() != target_.n_rows()) {
      throw DataError(
          fmt::format("{} sources and {} targets do not make pairs", source_.n_rows(), target_.n_rows()));
    }
    for (int64_t i = 0; i < source_.n_rows(); ++i) {
      longer_.push_back(std::max(source_tokens(i), target_tokens(i)));
    }
    if (longer_.empty()) throw DataError("there are no pairs to translate");
  }

 protected:
  EpochPlan make_plan(int64_t epoch) const override { return plan_epoch(longer_, options(), epoch); }

  Batch make(int64_t, std::span<const int64_t> examples) const override {
    std::vector<int64_t> source_lengths, target_lengths;
    for (const int64_t i : examples) {
      source_lengths.push_back(source_tokens(i));
      target_lengths.push_back(target_tokens(i));
    }
    const int64_t n_source = std::accumulate(source_lengths.begin(), source_lengths.end(), int64_t{0});
    const int64_t n_target = std::accumulate(target_lengths.begin(), target_lengths.end(), int64_t{0});
    PaddedRows source(source_lengths, special_.pad), decoder(target_lengths, special_.pad);
    Batch batch;
    batch.targets = int64_tensor(n_target);
    int64_t* target = batch.targets.mutable_data_ptr<int64_t>();
    int64_t* position = nullptr;
    if (decoder.padded()) {  // else every position is predicted
      batch.positions = int64_tensor(n_target);
      position = batch.positions.mutable_data_ptr<int64_t>();
    }
    for (size_t b = 0; b < examples.size(); ++b) {
      const auto row = static_cast<int64_t>(b);
      const int64_t from = source_.row_begin(examples[b]), to = target_.row_begin(examples[b]);
      const int64_t words = source_lengths[b] - 1;
      source_.copy(from, from + words, source.row(row));
      source.row(row)[words] = special_.eos;

      const int64_t length = target_lengths[b];
      decoder.row(row)[0] = special_.bos;
      target_.copy(to, to + length - 1, decoder.row(row) + 1);
      target_.copy(to, to + length - 1, target);
      target[length - 1] = special_.eos;
      target += length;
      if (position != nullptr) {
        std::iota(position, position + length, row * decoder.width());
        position += length;
      }
    }
    batch.input = source.batch();
    batch.decoder = decoder.batch();
    batch.tokens = n_source + n_target;
    return batch;
  }

 private:
  // Lengths as the model sees them: cut, with eos or bos.
  int64_t source_tokens(int64_t i) const { return std::min(source_.row_length(i) + 1, source_length_); }
  int64_t target_tokens(int64_t i) const { return std::min(target_.row_length(i) + 1, target_length_); }

  TokenStore source_, target_;
  int64_t source_length_, target_length_;
  SpecialTokens special_;
  std::vector<int64_t> longer_;  // tokens on the longer side of each pair
};

}  // namespace

std::unique_ptr<BatchSource> text_to_text_batches(TokenStore source, TokenStore target, int64_t source_length,
                                                  int64_t target_length, const SpecialTokens& special,
                                                  const BatchOptions& options) {
  return std::make_unique<TextToTextBatches>(std::move(source), std::move(target), source_length,
                                             target_length, special, options);
}

}  // namespace zoo

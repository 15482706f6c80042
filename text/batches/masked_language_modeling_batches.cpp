// Masked language modelling (BERT, Devlin et al. 2019, section 3.1): windows of a stream with hidden tokens.

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

class MaskedLanguageModelingBatches : public PlannedBatches {
 public:
  MaskedLanguageModelingBatches(TokenStore stream, int64_t length, const SpecialTokens& special,
                                int64_t vocab_size, const MaskingOptions& masking,
                                const BatchOptions& options)
      : PlannedBatches(unbucketed(options)),
        stream_(std::move(stream)),
        special_(special),
        masking_(masking),
        maskable_(static_cast<size_t>(vocab_size), true) {
    require_special(special.mask, "<mask>", "masked language modelling");
    require_special(special.cls, "<cls>", "masked language modelling");
    require_special(special.sep, "<sep>", "masked language modelling");
    if (length < 3) throw std::invalid_argument("a window of <cls>, text and <sep> needs at least 3 tokens");
    if (stream_.n_tokens() < 1) throw DataError("an empty text is too short for masked language modelling");
    for (const int64_t id :
         {special.pad, special.unk, special.bos, special.eos, special.mask, special.cls, special.sep}) {
      if (id >= 0 && id < vocab_size) maskable_[static_cast<size_t>(id)] = false;
    }
    for (int64_t id = 0; id < vocab_size; ++id) {
      if (maskable(id)) replacements_.push_back(id);
    }
    if (replacements_.empty()) throw DataError("the vocabulary has special tokens only");
    content_ = std::min(length - 2, stream_.n_tokens());
  }

 protected:
  EpochPlan make_plan(int64_t epoch) const override {
    const int64_t tokens = stream_.n_tokens() - offset(epoch);
    const std::vector<int64_t> lengths(static_cast<size_t>(tokens / content_), content_ + 2);
    EpochPlan plan = plan_epoch(lengths, options(), epoch);
    if (!shuffled() && tokens % content_ > 0) {
      plan.examples.push_back(tokens / content_);
      plan.cuts.push_back(plan.examples.size());
    }
    return plan;
  }

  Batch make(int64_t epoch, std::span<const int64_t> examples) const override {
    const int64_t start = offset(epoch);
    const auto rows = static_cast<int64_t>(examples.size());
    const int64_t content = std::min(content_, stream_.n_tokens() - (start + examples.front() * content_));
    const int64_t width = content + 2;
    torch::Tensor ids = torch::empty({rows, width}, torch::kInt64);
    std::vector<int64_t> targets, positions;
    for (int64_t b = 0; b < rows; ++b) {
      const int64_t example = examples[static_cast<size_t>(b)];
      int64_t* const row = ids.mutable_data_ptr<int64_t>() + b * width;
      row[0] = special_.cls;
      stream_.copy(start + example * content_, start + example * content_ + content, row + 1);
      row[width - 1] = special_.sep;
      corrupt(epoch, example, std::span(row, static_cast<size_t>(width)), b * width, targets, positions);
    }
    Batch batch;
    batch.input.ids = ids;
    batch.targets = int64_tensor(static_cast<int64_t>(targets.size()));
    batch.positions = int64_tensor(static_cast<int64_t>(positions.size()));
    std::ranges::copy(targets, batch.targets.mutable_data_ptr<int64_t>());
    std::ranges::copy(positions, batch.positions.mutable_data_ptr<int64_t>());
    batch.tokens = rows * width;
    return batch;
  }

 private:
  bool maskable(int64_t id) const {
    return static_cast<size_t>(id) < maskable_.size() && maskable_[static_cast<size_t>(id)];
  }

  int64_t offset(int64_t epoch) const {
    if (!shuffled()) return 0;
    const int64_t most = std::min(content_ - 1, stream_.n_tokens() - content_);
    CounterRandom random({options().seed, static_cast<uint64_t>(epoch), kOffsetPurpose});
    return random.below(most + 1);
  }

  /// Hides tokens of `row`, whose flat index begins at `base`. The choice depends on the example only.
  void corrupt(int64_t epoch, int64_t example, std::span<int64_t> row, int64_t base,
               std::vector<int64_t>& targets, std::vector<int64_t>& positions) const {
    CounterRandom random({options().seed, static_cast<uint64_t>(shuffled() ? epoch : 0), kMaskingPurpose,
                          static_cast<uint64_t>(example)});
    std::vector<int64_t> candidates;
    for (size_t t = 0; t < row.size(); ++t) {
      if (maskable(row[t])) candidates.push_back(static_cast<int64_t>(t));
    }
    if (candidates.empty()) return;
    // A fixed share of each window has less noise than a draw for each token. The fraction is rounded at
    // random, so that short windows have the right share on average.
    const auto n = static_cast<int64_t>(candidates.size());
    const auto share = static_cast<int64_t>(masking_.probability * static_cast<double>(n) + random.uniform());
    const int64_t chosen = std::clamp<int64_t>(share, 1, n);
    for (int64_t i = 0; i < chosen; ++i) {
      std::swap(candidates[static_cast<size_t>(i)], candidates[static_cast<size_t>(i + random.below(n - i))]);
    }
    candidates.resize(static_cast<size_t>(chosen));
    std::ranges::sort(candidates);
    for (const int64_t t : candidates) {
      int64_t& id = row[static_cast<size_t>(t)];
      targets.push_back(id);
      positions.push_back(base + t);
      const double draw = random.uniform();
      if (draw < masking_.replace) {
        id = special_.mask;
      } else if (draw < masking_.replace + masking_.random) {
        id = replacements_[static_cast<size_t>(random.below(static_cast<int64_t>(replacements_.size())))];
      }
    }
  }

  TokenStore stream_;
  int64_t content_;  // tokens of the stream in a window
  SpecialTokens special_;
  MaskingOptions masking_;
  std::vector<bool> maskable_;         // by id
  std::vector<int64_t> replacements_;  // the maskable ids
};

}  // namespace

std::unique_ptr<BatchSource> masked_language_modeling_batches(TokenStore stream, int64_t length,
                                                              const SpecialTokens& special,
                                                              int64_t vocab_size,
                                                              const MaskingOptions& masking,
                                                              const BatchOptions& options) {
  return std::make_unique<MaskedLanguageModelingBatches>(std::move(stream), length, special, vocab_size,
                                                         masking, options);
}

}  // namespace zoo

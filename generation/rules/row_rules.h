#pragma once
// Rules whose effect on a row is a matter of numbers. Once they are known, the next tokens can be chosen
// where the logits are, and nobody has to look at the text (row_sampler.h).

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "tokenizers/tokenizer.h"

namespace zoo {

struct SequenceView;

/// The rules that choose the next tokens of a row, in the order in which they are applied. Each member means
/// what the rule of this name does (logits_processors.h, repetition.h).
struct RowRules {
  TokenIds suppressed = {};
  int64_t vocab_size = std::numeric_limits<int64_t>::max();  // ids from here on are suppressed
  double repetition_penalty = 1;
  std::function<TokenIds(const SequenceView&)> said = {};  // for it: what was said before; choices join it
  double presence_penalty = 0, frequency_penalty = 0;
  double temperature = 1;
  int64_t top_k = 0;  // 0 = off
  double top_p = 1, min_p = 0;
  std::optional<uint64_t> seed = {};  // of the random numbers; nothing: the likeliest token is taken

  enum class Step { suppressed, repetition, occurrence, temperature, top_k, top_p, min_p, choice };
  /// Whether a rule for `step` may be added: no rule for it or for a later step is there. It then is.
  bool add(Step step) {
    if (last_ && *last_ >= step) return false;
    last_ = step;
    return true;
  }

 private:
  std::optional<Step> last_ = {};
};

}  // namespace zoo

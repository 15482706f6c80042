#pragma once
// Texts from the scores of a model that was trained with CTC (Graves et al. 2006).

#include <cstdint>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "tokenizers/tokenizer.h"

namespace zoo {

/// What a recording says.
struct CtcHypothesis {
  TokenIds ids;
  double logprob = 0;  // natural logarithm
};

/// The likeliest text of each of B rows.
///   log_probs  (B, T, C) float: log-probabilities of V = C-1 tokens and the blank
///   lengths    (B) int64: the vectors of each row that are not padding; undefined = all T
///   beam       1: greedy: the likeliest class of each vector, without repetitions and blanks. `logprob` is
///              that of this single path.
///              > 1: prefix beam search (Graves & Jaitly 2014, Hannun et al. 2014): `beam` texts are kept
///              after each vector, and all paths to one text that are kept count for it. `logprob` is that of
///              all these paths; with a beam as large as the number of texts it is the text's probability.
///   blank      its class; by default the last one
/// Deterministic. Throws CheckpointError if the numbers are NaN.
std::vector<CtcHypothesis> ctc_search(const torch::Tensor& log_probs, const torch::Tensor& lengths,
                                      int64_t beam, std::optional<int64_t> blank = std::nullopt);

}  // namespace zoo

#pragma once
// An output while it is generated, and what ends it.

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "generation/continuation_decoder.h"
#include "generation/log_probabilities.h"

namespace zoo {

/// The conditions that end every search.
struct SearchLimits {
  int64_t max_new_tokens = 200;
  TokenIds ends = {};  // tokens that end an output; empty: there are none
  /// If there are stop texts, one decoder for each prompt: an output ends with the token that completes a
  /// stop text there. Empty: there are none.
  std::vector<ContinuationDecoder> decoders = {};
  /// Whether an output of these tokens for this prompt ends without an end token; empty: none does.
  std::function<bool(std::span<const int64_t> prompt, std::span<const int64_t> ids)> is_complete = {};

  bool is_end(int64_t token) const { return std::ranges::find(ends, token) != ends.end(); }
  /// Whether an output ends with its newest token. `ids` is not empty.
  bool ends_with(std::span<const int64_t> prompt, std::span<const int64_t> ids) const {
    return is_end(ids.back()) || (is_complete && is_complete(prompt, ids));
  }
};

/// A continuation, finished or unfinished.
struct Hypothesis {
  TokenIds ids;  // generated tokens; the last one is an end token, or completes a stop text, if the search
                 // came to it
  std::vector<double> logprobs;  // natural logarithm, by the model itself (before any processor)
  double total = 0;              // sum of logprobs
  /// The likeliest tokens at each place, by the model itself; empty if the request asks for none.
  std::vector<std::vector<TokenLogprob>> likeliest = {};
  int64_t n_proposed = 0;  // tokens that were proposed for it (generation/speculation.h)
  int64_t n_accepted = 0;  // of these, how many it has

  void append(int64_t id, double logprob);
};

/// total / length^penalty. The length counts all generated tokens, eos included, as in Hugging Face
/// transformers.
double length_normalised(const Hypothesis& hypothesis, double penalty);

}  // namespace zoo

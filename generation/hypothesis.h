#pragma once
// An output while it is generated, and what ends it.

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "generation/continuation_decoder.h"
#include "generation/log_probabilities.h"

namespace zoo {

/// Why an output ended.
enum class OutputEnd {
  end_token,  // the model said an end token
  stop_text,  // one of the stop texts followed
  length,     // it has as many tokens as were asked for, or as the model can write
  complete,   // without an end token: its expression or schema can go no further
  time        // the time for a request to a server is over
};
constexpr auto config_names(OutputEnd) {
  return std::to_array<std::string_view>({"end_token", "stop_text", "length", "complete", "time"});
}

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
  /// Whether and how an output ends with its newest token, for every search. `ids` is not empty; `text`, if
  /// there are stop texts, has read all but the newest one.
  std::optional<OutputEnd> end_of(std::span<const int64_t> prompt, std::span<const int64_t> ids,
                                  ContinuationDecoder* text) const;
};

/// A continuation, finished or unfinished.
struct Hypothesis {
  TokenIds ids;  // generated tokens; the last one is an end token, or completes a stop text, if the search
                 // came to it
  std::vector<double> logprobs;  // natural logarithm, by the model itself (before any processor)
  double total = 0;              // sum of logprobs
  /// The likeliest tokens at each place, by the model itself; empty if the request asks for none.
  std::vector<std::vector<TokenLogprob>> likeliest = {};
  int64_t n_proposed = 0;             // tokens that were proposed for it (generation/speculation.h)
  int64_t n_accepted = 0;             // of these, how many it has
  std::optional<OutputEnd> end = {};  // nothing: it goes on

  void append(int64_t id, double logprob);
};

/// total / length^penalty. The length counts all generated tokens, eos included, as in Hugging Face
/// transformers.
double length_normalised(const Hypothesis& hypothesis, double penalty);

}  // namespace zoo

#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

namespace zoo {

/// A token and its natural log-probability.
struct TokenLogprob {
  int64_t id = -1;
  double logprob = 0;
  bool operator==(const TokenLogprob&) const = default;
};

/// The natural log-probability of one token of each row, log softmax(logits)[tokens], in float64. logits: (N,
/// V), N tokens. A row's result does not depend on other rows. Throws CheckpointError if one is not finite.
std::vector<double> log_probabilities(const torch::Tensor& logits, const std::vector<int64_t>& tokens);

/// The n likeliest tokens of each row with their log-probabilities, the likeliest first, equal ones by their
/// ids; all tokens if there are fewer. logits: (N, V). A row's result does not depend on other rows. Throws
/// CheckpointError if one is not finite.
std::vector<std::vector<TokenLogprob>> likeliest_tokens(const torch::Tensor& logits, int64_t n);

}  // namespace zoo

#pragma once

#include <vector>

#include <torch/types.h>

namespace zoo {

/// The natural log-probability of one token of each row, log softmax(logits)[tokens], in float64. logits: (N,
/// V), N tokens. A row's result does not depend on other rows. Throws CheckpointError if one is not finite.
std::vector<double> log_probabilities(const torch::Tensor& logits, const std::vector<int64_t>& tokens);

}  // namespace zoo

#pragma once
// CTC by its definition: every path is looked at.

#include <cmath>
#include <cstdint>
#include <map>
#include <vector>

#include <torch/types.h>

namespace zoo::testing {

/// The probability of every text, summed over all C^T paths of log_probs (T, C); the last class is the blank.
inline std::map<std::vector<int64_t>, double> probabilities_of_texts(const torch::Tensor& log_probs) {
  const int64_t T = log_probs.size(0), C = log_probs.size(1), blank = C - 1;
  std::map<std::vector<int64_t>, double> result;
  const auto n_paths = static_cast<int64_t>(std::llround(std::pow(C, T)));
  for (int64_t path = 0; path < n_paths; ++path) {
    std::vector<int64_t> text;
    double total = 0;
    int64_t last = blank, rest = path;
    for (int64_t t = 0; t < T; ++t, rest /= C) {
      const int64_t symbol = rest % C;
      total += log_probs[t][symbol].item<double>();
      if (symbol != blank && symbol != last) text.push_back(symbol);
      last = symbol;
    }
    result[text] += std::exp(total);
  }
  return result;
}

}  // namespace zoo::testing

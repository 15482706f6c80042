#pragma once
// Soft caps of scores: they keep attention scores and logits within -c … c (Gemma 2, Gemma Team 2024, section
// 2.1).

#include <optional>

#include <torch/types.h>

namespace zoo {

/// cap·tanh(x / cap); x itself without a cap. cap > 0.
inline torch::Tensor soft_capped(const torch::Tensor& x, std::optional<double> cap) {
  return cap ? torch::tanh(x / *cap) * *cap : x;
}

}  // namespace zoo

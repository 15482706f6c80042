#pragma once
// A sliding window, and tokens that see and are seen everywhere: Longformer (Beltagy et al. 2020), and the
// sliding windows of Mistral and Gemma.

#include <span>
#include <vector>

#include <torch/arg.h>
#include <torch/types.h>

#include "layers/attention/attention_pattern.h"

namespace zoo {

struct WindowOptions {
  /// Keys that a query sees on each side besides its own; in a causal pattern, before it. Longformer's
  /// attention_window is 2·size. Mistral's sliding_window is size + 1, because it includes the query's own
  /// key.
  TORCH_ARG(int64_t, size) = 256;
  /// Distance between the keys of a window. The window then reaches size·dilation positions.
  TORCH_ARG(int64_t, dilation) = 1;
  /// The first tokens that see and are seen everywhere.
  TORCH_ARG(int64_t, n_global) = 0;
  /// Tokens with these ids see and are seen everywhere. Bidirectional only.
  TORCH_ARG(std::vector<int64_t>, global_ids) = {};
  /// Whether global queries see all keys. If not, another attention computes their rows.
  TORCH_ARG(bool, global_queries) = true;
};

class WindowPattern final : public AttentionPattern {
 public:
  /// Throws c10::Error if size or dilation is not positive, or for global ids in a causal pattern.
  WindowPattern(Direction direction, const WindowOptions& options);

  Bands bands(int64_t n) const override;
  VisiblePairs visible(const PatternInput& input) const override;
  torch::Tensor sees(const torch::Tensor& queries, const torch::Tensor& keys) const override;
  std::optional<Reach> reach() const override;
  bool sees_all_in_reach() const override { return options_.dilation() == 1; }
  std::optional<int64_t> plain_window() const override;
  std::string description() const override;

  /// The global positions of each row, in order.
  std::vector<std::vector<int64_t>> global_positions(const PatternInput& input) const;
  const WindowOptions& options() const { return options_; }

 private:
  Bands bands_with(int64_t n, const std::vector<int64_t>& global) const;

  WindowOptions options_;
};

}  // namespace zoo

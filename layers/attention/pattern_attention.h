#pragma once
// Self-attention in which queries see the keys of a pattern only: over whole sequences, and token by token.

#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "layers/attention/attention_pattern.h"
#include "layers/attention/layer_state.h"
#include "layers/attention/mask.h"

namespace zoo {

/// The arguments of a call besides queries, keys and values.
struct PatternCall {
  const AttentionPattern& pattern;
  Mask mask;  // causality and lengths
  double scale = 1;
  double dropout = 0;                          // on the weights; 0 outside training
  std::optional<double> softcap = {};          // as in ScaledDotProductOptions
  torch::Tensor sinks = {};                    // as in ScaledDotProductOptions
  torch::Tensor ids = {};                      // (B, T) int64: token ids; may be undefined
  LayerState* state = nullptr;                 // of new_pattern_state(); needs `range`
  const PositionRange* range = nullptr;        // with a state: the positions of the tokens
  std::vector<torch::Tensor>* maps = nullptr;  // the weights (B, H, T, T) are appended
};

/// What a layer with this pattern remembers: keys and values, all of them or those in reach.
std::unique_ptr<LayerState> new_pattern_state(const AttentionPattern& pattern, int64_t n_rows);

/// q: (B, H, T, Dh), k: (B, K, T, Dh), v: (B, K, T, Dv). Returns (B, H, T, Dv). With a state, the tokens
/// follow those that it has read, and are added to it.
torch::Tensor pattern_attention(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                                const PatternCall& call);

}  // namespace zoo

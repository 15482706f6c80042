#pragma once
// What one call of an attention, or of a mixer in its place, may be told besides its input.

#include <vector>

#include <torch/types.h>

#include "layers/attention/activation_observer.h"
#include "layers/attention/layer_state.h"
#include "layers/attention/mask.h"
#include "layers/attention/positions.h"
#include "layers/attention/rotary.h"

namespace zoo {

/// The arguments of one call of a mixer; all are optional.
struct AttentionContext {
  Mask mask = {};  // which keys each query sees
  /// (B, S, D): the source of keys and values; undefined: x itself.
  torch::Tensor memory = {};
  /// Self-attention's state of earlier tokens; the call adds the tokens of x. Needs `range`.
  LayerState* state = nullptr;
  /// Cross-attention's keys and values, in place of `memory`. Each memory serves equally many consecutive
  /// rows of x.
  const MemoryState* remembered = nullptr;
  /// The positions of the tokens of x; null: from position 0 on.
  const PositionRange* range = nullptr;
  /// Rotates queries and keys.
  const RotaryTable* rotary = nullptr;
  /// Added to the scores; broadcastable to (B, H, T, S).
  torch::Tensor bias = {};
  /// (B or 1, T, D): added to x for queries, and in self-attention also for keys (Carion et al. 2020).
  torch::Tensor query_positions = {};
  /// (B, T) int64: the token ids of x, for patterns that know their global tokens by ids.
  torch::Tensor ids = {};
  /// (B or 1, S, D): added to the memory for keys.
  torch::Tensor memory_positions = {};
  /// The weights (B, H, T, S) are appended. Uses explicit attention instead of the fused kernel.
  std::vector<torch::Tensor>* maps = nullptr;
  /// Sees, and may replace, what the heads return, (B, T, H, Dh), before the output projection. A mixer
  /// without heads does not call it. Null: nobody does.
  const ObservedPlace* heads = nullptr;
};

}  // namespace zoo

#pragma once
// Attention roll-out (Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers"): how much of each
// token at the bottom of a stack is in each token at a layer's output, if attention and the residual
// connections around it were all that mixed them.

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "analysis/attention_maps.h"

namespace zoo {

struct Rollout {
  AttentionKind kind;
  int64_t layer;          // from 0: through the layers up to this one, it included
  torch::Tensor weights;  // (T, S) double on the CPU; rows sum to 1
};

/// Encoder and decoder self-attention have one for each layer: with A_l the mean of the heads of layer l,
/// (T, T), and each row of ½ A_l + ½ I divided by its sum,
///   R_l = (½ A_l + ½ I) R_{l−1},  R_{−1} = I,
/// where ½ I stands for the residual connection. What hides the future in A hides it in R.
/// Cross-attention has one, for its last layer: the mean of that layer's heads, (T, S), times R of the
/// encoder's last layer, so that a row tells which source tokens, not which of the encoder's outputs, are
/// read. There is no identity in it: the residual connection around it carries target tokens.
/// In the order encoder, decoder, cross; each from the first layer to the last.
std::vector<Rollout> attention_rollout(const AttentionReport& report);

}  // namespace zoo

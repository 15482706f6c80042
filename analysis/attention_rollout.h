#pragma once
// Attention roll-out (Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers"): how much of each
// token at the bottom of a stack is in each token at a layer's output. It assumes that only attention and the
// residual connections around it mix tokens.

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "analysis/attention_maps.h"

namespace zoo {

struct Rollout {
  AttentionKind kind;
  int64_t layer;          // from 0; the roll-out includes this layer and those before it
  torch::Tensor weights;  // (T, S) double on the CPU; rows sum to 1
};

/// Encoder and decoder self-attention have one roll-out for each layer: with A_l the mean of the heads of
/// layer l, (T, T), and each row of ½ A_l + ½ I divided by its sum,
///   R_l = (½ A_l + ½ I) R_{l−1},  R_{−1} = I,
/// where ½ I stands for the residual connection. A causal mask of A is also a mask of R.
/// Cross-attention has one roll-out, for its last layer: the mean of that layer's heads, (T, S), times R of
/// the encoder's last layer. A row thus gives the weights of source tokens and not of the encoder's outputs.
/// It contains no identity: the residual connection around cross-attention carries target tokens.
/// The order is encoder, decoder, cross; each from the first layer to the last.
std::vector<Rollout> attention_rollout(const AttentionReport& report);

}  // namespace zoo

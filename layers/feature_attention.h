#pragma once
// Attention without softmax: y_t = Σ_s φ(q_t)·φ(k_s) v_s / Σ_s φ(q_t)·φ(k_s) over the visible tokens s. The
// sums over s do not depend on t, so time and memory are linear in the number of tokens. φ is linear
// attention's elu + 1 (linear_attention.h) or Performer's random features (performer.h).

#include <torch/types.h>

#include "layers/attention/attention_context.h"
#include "layers/attention/direction.h"
#include "layers/attention/head_projections.h"
#include "layers/running_state.h"

namespace zoo {

/// The features of a call in float32.
struct Features {
  torch::Tensor q = {};  // (B, H, T, M)
  torch::Tensor k = {};  // (B, K, T, M)
  torch::Tensor v = {};  // (B, K, T, Dv)
  /// If defined, these stand for q and k above the fraction line.
  torch::Tensor q_above = {}, k_above = {};
  /// (B, K, T), causal form only: keys are multiplied by exp of the sum of log_decay over the later tokens.
  /// See Performer's stabiliser. Undefined: by 1.
  torch::Tensor log_decay = {};
  /// Added below the fraction line.
  double eps = 0;
};

/// The same with zeros in place of keys and values where `real` (B, T) bool is false. Undefined: no change.
Features without_padding(Features features, const torch::Tensor& real);

/// Every token sees all tokens. Returns (B, H, T, Dv).
torch::Tensor attend_to_all(const Features& features);

struct AttendedPast {
  torch::Tensor output;  // (B, H, T, Dv)
  /// (B, K, M, Dv+1): Σ k vᵀ, and in the last column Σ k.
  torch::Tensor sums;
};

/// Every token sees itself and the tokens before it. `before`: the sums of earlier calls, or undefined.
AttendedPast attend_to_past(const Features& features, const torch::Tensor& before = {});

/// (B, H, T, T): the weights of the values, which attend_to_all() and attend_to_past() never make.
torch::Tensor weights_of(const Features& features, bool causal);

/// (B, H, T, Dv): one of these for a call of a mixer, which is causal if its mask is, or if it has a state.
/// The sums are tensor 0 of a RunningState. `real` as in without_padding().
torch::Tensor attend(Features features, const torch::Tensor& real, const AttentionContext& context);

/// Multiply-adds over the tokens of one row, and the float32 numbers that the backward pass needs for each
/// token.
struct FeatureCost {
  double products = 0;
  double kept = 0;
};
/// Whether what stands below the fraction line has the same features as what stands above it, or needs a sum
/// of its own (Features::q_above).
enum class Normalisation { one_sum, sum_of_its_own };
/// `m` features a head over `n_tokens`.
FeatureCost feature_cost(const HeadSizes& sizes, int64_t m, Direction direction, Normalisation below,
                         int64_t n_tokens);

}  // namespace zoo

#pragma once
// The gated delta rule (Yang et al. 2024, "Gated Delta Networks"): a sum over the past that replaces the
// value of a key rather than adding to it.

#include <torch/types.h>

namespace zoo {

/// All in float32 or float64.
struct DeltaRuleInput {
  torch::Tensor q;     // (B, H, T, Dk), scaled
  torch::Tensor k;     // (B, H, T, Dk), of length 1
  torch::Tensor v;     // (B, H, T, Dv)
  torch::Tensor beta;  // (B, H, T), 0 … 1: how much of the old value is replaced
  /// (B, H, T), at most 0: how much is kept; undefined = 0.
  torch::Tensor log_alpha = {};
  /// (B, H, Dk, Dv): the sum before the first token; undefined = 0.
  torch::Tensor before = {};
};

struct DeltaRuleResult {
  torch::Tensor output;  // (B, H, T, Dv)
  torch::Tensor sum;     // (B, H, Dk, Dv) after the last token
};

/// S_t = α_t (I - β_t k_t k_tᵀ) S_{t-1} + β_t k_t v_tᵀ, y_t = S_tᵀ q_t. A token with β = 0 and α = 1 does not
/// change the sum. Many tokens are computed in chunks of kChunkLength (running_sums.h): a triangular system
/// for each chunk gives what its tokens write (the WY form of Yang et al. 2024b, section 3), then the chunks
/// follow one another. One token is one step of the recurrence.
DeltaRuleResult delta_rule(const DeltaRuleInput& input);

}  // namespace zoo

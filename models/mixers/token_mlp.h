#pragma once
// The token mixing of MLP-Mixer (Tolstikhin et al. 2021, section 2): for each channel the same network of two
// layers over the tokens, W₂ gelu(W₁ xᵀ + b₁) + b₂. It needs no position: each token has its own weights.

#include "layers/attention/mixer.h"
#include "layers/feed_forward.h"
#include "models/mixers/mixers.h"

namespace zoo {

struct TokenMlpOptions {
  TokenMlpOptions(int64_t n_tokens, int64_t d_tokens) : n_tokens_(n_tokens), d_tokens_(d_tokens) {}
  /// The network over the tokens.
  FeedForwardOptions network() const {
    return FeedForwardOptions(n_tokens_, d_tokens_)
        .activation(Activation::gelu)
        .bias(bias_)
        .dropout(dropout_);
  }

  /// The number of tokens; the most, if rows are shorter.
  TORCH_ARG(int64_t, n_tokens);
  /// Inner width of the network.
  TORCH_ARG(int64_t, d_tokens);
  TORCH_ARG(bool, bias) = true;
  /// Probability of dropping an inner activation.
  TORCH_ARG(double, dropout) = 0.0;
};

/// Not causal: each token sees every other one. Padding is 0 before the network, and what is missing to
/// n_tokens counts as padding.
class TokenMlpImpl : public Cloneable<TokenMlpImpl, MixerImpl> {
 public:
  explicit TokenMlpImpl(const TokenMlpOptions& options);
  /// x: (B, T, D) → (B, T, D). Throws DataError if T is greater than n_tokens, c10::Error for a causal mask,
  /// a state, positions to be added, or if weights are wanted.
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context = {}) override;
  void pretty_print(std::ostream& stream) const override;

  TokenMlpOptions options;
  FeedForward network{nullptr};  // tokens → d_tokens → tokens
};

using TokenMlp = MixerHolder<TokenMlpImpl>;

}  // namespace zoo

#pragma once
// What the mixers with heads share with Attention: the projections, under the same names, and which tokens
// they see.

#include <memory>

#include <torch/types.h>

#include "layers/attention.h"
#include "layers/mixer.h"
#include "layers/norm.h"
#include "layers/weights/linear.h"

namespace zoo {

/// Projects to queries, keys and values, and from the heads back, with the parameters of an Attention of the
/// same options. The weights of a trained Attention therefore fit.
class ProjectedMixerImpl : public MixerImpl {
 public:
  int64_t head_dim() const { return head_dim_; }
  int64_t n_kv_heads() const { return n_kv_heads_; }

  AttentionOptions options;
  Linear q{nullptr}, k{nullptr}, v{nullptr};  // D → H·Dh, K·Dh, K·Dh; if separate
  Linear qkv{nullptr};                        // D → (H + 2K)·Dh; if fused
  Linear out{nullptr};                        // H·Dh → D
  Norm q_norm{nullptr}, k_norm{nullptr};

 protected:
  /// Throws c10::Error for Shaw's vectors, and as Attention does.
  explicit ProjectedMixerImpl(const AttentionOptions& options);

  /// q: (B, H, T, Dh); k and v: (B, K, T, Dh).
  struct Heads {
    torch::Tensor q, k, v;
  };
  /// Queries and keys are made from x + query_positions and normalised, but not rotated. Throws c10::Error
  /// for a context with a bias of the scores.
  Heads heads_of(const torch::Tensor& x, const AttentionContext& context);
  /// (B, H, T, Dh) → (B, T, D)
  torch::Tensor merged(const torch::Tensor& mixed);

 private:
  torch::Tensor split(const torch::Tensor& x, int64_t n_heads) const;

  int64_t head_dim_, n_kv_heads_;
};

/// Zeros for the state of a mixer with this map: on its device, float32, or float64 if the map is.
torch::Tensor empty_state(const Linear& map, torch::IntArrayRef sizes);

/// Sums over many tokens are computed in float32 at least, also under autocast, which the lifetime of this
/// object switches off for this thread.
class FullPrecision {
 public:
  explicit FullPrecision(torch::Device device);
  ~FullPrecision();
  FullPrecision(const FullPrecision&) = delete;
  FullPrecision& operator=(const FullPrecision&) = delete;

  /// x in float32, or in float64 if it is.
  torch::Tensor operator()(const torch::Tensor& x) const;

 private:
  c10::DeviceType device_;
  bool was_enabled_;
};

/// (B, T) bool, true = a token of its row: false for padding, which must not change what a mixer remembers.
/// Undefined: there is no padding. Throws c10::Error for a mask that hides anything besides later tokens and
/// padding.
torch::Tensor real_tokens(const AttentionContext& context, int64_t n_tokens, torch::Device device);

}  // namespace zoo

#pragma once
// The maps from vectors to queries, keys and values, and back: as three matrices or stacked in one. Attention
// and the gated delta rule share them.

#include <cstdint>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "layers/attention/attention_options.h"
#include "layers/attention/mixer.h"
#include "layers/weights/linear.h"

namespace zoo {

class QkvProjectionsImpl : public MixerImpl {
 public:
  int64_t head_dim() const { return head_dim_; }

  Linear q{nullptr}, k{nullptr}, v{nullptr};  // D → heads·Dh each; if separate
  Linear qkv{nullptr};                        // D → queries, keys, values in this order; if fused
  Linear out{nullptr};                        // value or query heads·Dh → D

 protected:
  /// Throws c10::Error if D is not a multiple of `n_heads` and there is no head_dim.
  QkvProjectionsImpl(int64_t d_model, int64_t n_heads, std::optional<int64_t> head_dim);

  /// Which of the maps have biases.
  struct Biases {
    bool queries_and_values, keys;
  };
  /// Makes q, k and v, or qkv, for heads of width Dh. Throws c10::Error for a fused map with a bias of some.
  void make_qkv(int64_t n_query_heads, int64_t n_key_heads, int64_t n_value_heads, Projection projection,
                const Biases& biases);
  /// Makes `out` for `n_heads` heads of width Dh.
  void make_out(int64_t n_heads, bool bias);

  /// Queries, keys and values of x (B, T, D). Queries and keys are made from x + positions, (B or 1, T, D) or
  /// undefined.
  std::vector<torch::Tensor> project(const torch::Tensor& x, const torch::Tensor& positions);
  /// The same, one after the other in (B, T, …).
  torch::Tensor project_stacked(const torch::Tensor& x, const torch::Tensor& positions);
  /// (B, T, n_heads·Dh) → (B, n_heads, T, Dh)
  torch::Tensor split_heads(const torch::Tensor& x, int64_t n_heads) const;

  int64_t d_model_, head_dim_;
};

/// x + positions, or x if there are none.
torch::Tensor with_positions(const torch::Tensor& x, const torch::Tensor& positions);

}  // namespace zoo

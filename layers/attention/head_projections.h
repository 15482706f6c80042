#pragma once
// The linear maps of attention: from vectors to the queries, keys and values of heads, and back. Attention
// and the mixers that can take its place (layers/mixers/) share them, so the weights of one fit the others.

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include <torch/types.h>

#include "layers/attention/mixer.h"
#include "layers/patterns/attention_pattern.h"
#include "layers/weights/linear.h"
#include "layers/weights/norm.h"

namespace zoo {

/// Query, key and value as three matrices, or stacked in this order in one.
enum class Projection { separate, fused };
constexpr auto config_names(Projection) { return std::to_array<std::string_view>({"separate", "fused"}); }

struct AttentionOptions {
  AttentionOptions(int64_t d_model, int64_t n_heads) : d_model_(d_model), n_heads_(n_heads) {}
  TORCH_ARG(int64_t, d_model);
  /// Query heads H.
  TORCH_ARG(int64_t, n_heads);
  /// Key/value heads K, a divisor of H; default H. 1 = multi-query.
  TORCH_ARG(std::optional<int64_t>, n_kv_heads) = std::nullopt;
  /// Dh; default D/H, which requires that H divides D.
  TORCH_ARG(std::optional<int64_t>, head_dim) = std::nullopt;
  TORCH_ARG(Projection, projection) = Projection::separate;
  TORCH_ARG(bool, qkv_bias) = true;
  TORCH_ARG(bool, out_bias) = true;
  /// Probability of dropping an attention weight.
  TORCH_ARG(double, dropout) = 0.0;
  /// Factor on the scores; default 1/√Dh. T5 uses 1.
  TORCH_ARG(std::optional<double>, scale) = std::nullopt;
  /// Normalises each head's queries and keys before positions are applied (Qwen3); its size must be Dh.
  TORCH_ARG(std::optional<NormOptions>, qk_norm) = std::nullopt;
  /// n: adds learned vectors for the relative positions -n … n to keys and values (Shaw et al. 2018), in
  /// self-attention only. Uses explicit attention instead of the fused kernel.
  TORCH_ARG(std::optional<int64_t>, shaw_max_distance) = std::nullopt;
  /// The keys that queries see in self-attention, as far as the mask allows; null: all keys. Such an
  /// attention takes no bias, and no mask but causality and lengths.
  TORCH_ARG(std::shared_ptr<const AttentionPattern>, pattern) = nullptr;
  /// The global queries of a WindowPattern without global_queries have projections of their own, and see all
  /// keys, which have other projections for them (Longformer, section 3.1).
  TORCH_ARG(bool, global_projections) = false;
};

class HeadProjectionsImpl : public MixerImpl {
 public:
  int64_t head_dim() const { return head_dim_; }
  int64_t n_kv_heads() const { return n_kv_heads_; }

  AttentionOptions options;
  Linear q{nullptr}, k{nullptr}, v{nullptr};  // D → H·Dh, K·Dh, K·Dh; if separate
  Linear qkv{nullptr};                        // D → (H + 2K)·Dh; if fused
  Linear out{nullptr};                        // H·Dh → D
  Norm q_norm{nullptr}, k_norm{nullptr};

 protected:
  /// Throws c10::Error if D is not a multiple of H and there is no head_dim, or if H is not a multiple of K.
  explicit HeadProjectionsImpl(const AttentionOptions& options);

  /// q: (B, H, T, Dh); k and v: (B, K, S, Dh).
  struct Heads {
    torch::Tensor q, k, v;
  };
  /// The heads of x (B, T, D). Queries and keys are made from x + positions, (B or 1, T, D) or undefined, and
  /// normalised, but not rotated.
  Heads project_heads(const torch::Tensor& x, const torch::Tensor& positions);
  /// (B, T, n_heads·Dh) → (B, n_heads, T, Dh)
  torch::Tensor split_heads(const torch::Tensor& x, int64_t n_heads) const;
  /// (B, H, T, Dh) → (B, T, D)
  torch::Tensor merged(const torch::Tensor& mixed);

  int64_t head_dim_, n_kv_heads_;
};

/// x + positions, or x if there are none.
torch::Tensor with_positions(const torch::Tensor& x, const torch::Tensor& positions);

}  // namespace zoo

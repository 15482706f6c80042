#pragma once
// Multi-head attention (Vaswani et al. 2017, section 3.2): Concat(head_1 … head_H) W^O. One module serves
// self- and cross-attention, grouped-query and multi-query heads; positions, masks and caches are
// collaborators that come with each call.

#include <optional>
#include <vector>

#include <torch/nn/modules/linear.h>

#include "layers/kv_cache.h"
#include "layers/mask.h"
#include "layers/norm.h"
#include "layers/positions/positions.h"
#include "layers/positions/rotary.h"

namespace zoo {

/// Query, key and value matrices of their own, or stacked in this order in one.
enum class Projection { separate, fused };

struct AttentionOptions {
  AttentionOptions(int64_t d_model, int64_t n_heads) : d_model_(d_model), n_heads_(n_heads) {}
  TORCH_ARG(int64_t, d_model);
  /// Query heads H.
  TORCH_ARG(int64_t, n_heads);
  /// Key/value heads K, a divisor of H; default H. 1 = multi-query.
  TORCH_ARG(std::optional<int64_t>, n_kv_heads) = std::nullopt;
  /// Dh; default D/H, which must then be whole.
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
  /// Learned vectors for the relative positions -n … n, added to keys and values (Shaw et al. 2018);
  /// self-attention only. Takes the explicit path.
  TORCH_ARG(std::optional<int64_t>, shaw_max_distance) = std::nullopt;
};

/// What attention needs to know about one call; everything is optional.
struct AttentionContext {
  Mask mask = {};              // which keys each query sees
  torch::Tensor memory = {};   // (B, S, D) where keys and values come from; undefined: x itself
  KeyValues* cache = nullptr;  // self-attention: extended by this call; cross: filled once, then used
  const RotaryTable* rotary = nullptr;  // turns queries and keys
  torch::Tensor bias = {};              // broadcastable to (B, H, T, S), added to the scores
  std::vector<torch::Tensor>* maps =
      nullptr;  // the weights (B, H, T, S) are appended; takes the explicit path
};

class AttentionImpl : public torch::nn::Module {
 public:
  /// Throws c10::Error where D is no multiple of H, or H none of K.
  explicit AttentionImpl(const AttentionOptions& options);
  /// x: (B, T, D) → (B, T, D)
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context = {});

  int64_t head_dim() const { return head_dim_; }
  int64_t n_kv_heads() const { return n_kv_heads_; }

  AttentionOptions options;
  torch::nn::Linear q{nullptr}, k{nullptr}, v{nullptr};  // D → H·Dh, K·Dh, K·Dh; when separate
  torch::nn::Linear qkv{nullptr};                        // D → (H + 2K)·Dh; when fused
  torch::nn::Linear out{nullptr};                        // H·Dh → D
  Norm q_norm{nullptr}, k_norm{nullptr};
  torch::Tensor relative_keys, relative_values;  // (2n+1, Dh)

 private:
  struct Heads {
    torch::Tensor q, k, v;  // (B, H, T, Dh), (B, K, S, Dh) twice; k and v undefined if they are cached
  };
  Heads project(const torch::Tensor& x, const AttentionContext& context);
  torch::Tensor split_heads(const torch::Tensor& x, int64_t n_heads) const;
  torch::Tensor with_relative_positions(const Heads& heads, const AttentionContext& context, double dropout);

  int64_t head_dim_, n_kv_heads_;
};

class Attention : public torch::nn::ModuleHolder<AttentionImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  using Impl = AttentionImpl;
  /// As forward(). Spelt out because a context in braces does not fit the holder's template:
  /// attention(x, {.mask = Mask::causal()}).
  torch::Tensor operator()(const torch::Tensor& x, const AttentionContext& context = {}) {
    return get()->forward(x, context);
  }
};

}  // namespace zoo

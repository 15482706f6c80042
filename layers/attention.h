#pragma once
// Multi-head attention (Vaswani et al. 2017, section 3.2): Concat(head_1 … head_H) W^O. One module does self-
// and cross-attention, with grouped-query and multi-query heads. Positions, masks and states are arguments of
// each call.

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "layers/mixer.h"
#include "layers/norm.h"
#include "layers/patterns/attention_pattern.h"
#include "layers/weights/linear.h"

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

class AttentionImpl : public MixerImpl, public WeightOwner {
 public:
  /// Throws c10::Error if D is not a multiple of H and there is no head_dim, or if H is not a multiple of K.
  explicit AttentionImpl(const AttentionOptions& options);
  /// x: (B, T, D) → (B, T, D)
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context = {}) override;
  std::unique_ptr<LayerState> new_state(int64_t n_rows) const override;
  /// The keys and values of a memory (B, S, D), for AttentionContext::remembered. `positions` are
  /// AttentionContext::memory_positions.
  std::unique_ptr<MemoryState> remember(const torch::Tensor& memory, const torch::Tensor& positions = {});
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  int64_t head_dim() const { return head_dim_; }
  int64_t n_kv_heads() const { return n_kv_heads_; }

  AttentionOptions options;
  Linear q{nullptr}, k{nullptr}, v{nullptr};                       // D → H·Dh, K·Dh, K·Dh; if separate
  Linear qkv{nullptr};                                             // D → (H + 2K)·Dh; if fused
  Linear out{nullptr};                                             // H·Dh → D
  Linear global_q{nullptr}, global_k{nullptr}, global_v{nullptr};  // as q, k and v; if global_projections
  Norm q_norm{nullptr}, k_norm{nullptr};
  torch::Tensor relative_keys, relative_values;  // (2n+1, Dh)

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;

 private:
  /// q: (B, H, T, Dh); k and v: (B, K, S, Dh).
  struct Heads {
    torch::Tensor q, k, v;
  };
  Heads self_heads(const torch::Tensor& x, const AttentionContext& context);
  Heads extended(Heads heads, const AttentionContext& context);
  double scale() const;
  Heads cross_heads(const torch::Tensor& x, const AttentionContext& context);
  torch::Tensor project_queries(const torch::Tensor& x);
  KeysAndValues project_memory(const torch::Tensor& memory, const torch::Tensor& positions);
  torch::Tensor split_heads(const torch::Tensor& x, int64_t n_heads) const;
  torch::Tensor mix(const Heads& heads, const AttentionContext& context);
  torch::Tensor mix_pattern(const torch::Tensor& x, const Heads& heads, const AttentionContext& context);
  torch::Tensor with_global_queries(const torch::Tensor& mixed, const torch::Tensor& x,
                                    const AttentionContext& context);
  torch::Tensor mix_remembered(const Heads& heads, const AttentionContext& context);
  torch::Tensor mix_with_relative_positions(const Heads& heads, const AttentionContext& context);

  int64_t head_dim_, n_kv_heads_;
};

class Attention : public torch::nn::ModuleHolder<AttentionImpl> {
 public:
  using ModuleHolder::ModuleHolder;
  using Impl = AttentionImpl;
  /// As forward(). Declared because a braced context does not fit the holder's template:
  /// attention(x, {.mask = Mask::causal()}).
  torch::Tensor operator()(const torch::Tensor& x, const AttentionContext& context = {}) {
    return get()->forward(x, context);
  }
};

}  // namespace zoo

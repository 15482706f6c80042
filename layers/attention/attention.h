#pragma once
// Multi-head attention (Vaswani et al. 2017, section 3.2): Concat(head_1 … head_H) W^O. One module does self-
// and cross-attention, with grouped-query and multi-query heads. Positions, masks and states are arguments of
// each call.

#include <memory>
#include <optional>

#include "layers/attention/head_projections.h"
#include "layers/attention/scaled_dot_product.h"

namespace zoo {

class AttentionImpl : public HeadProjectionsImpl, public WeightOwner {
 public:
  /// Throws c10::Error as HeadProjectionsImpl, and for options that do not fit each other.
  explicit AttentionImpl(const AttentionOptions& options);
  /// x: (B, T, D) → (B, T, D)
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context = {}) override;
  std::unique_ptr<LayerState> new_state(int64_t n_rows) const override;
  /// The keys and values of a memory (B, S, D), for AttentionContext::remembered. `positions` are
  /// AttentionContext::memory_positions.
  std::unique_ptr<MemoryState> remember(const torch::Tensor& memory, const torch::Tensor& positions = {});
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  Linear global_q{nullptr}, global_k{nullptr}, global_v{nullptr};  // as q, k and v; if global_projections
  torch::Tensor relative_keys, relative_values;                    // (2n+1, Dh)

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;

 private:
  Heads self_heads(const torch::Tensor& x, const AttentionContext& context);
  double scale() const;
  torch::Tensor cross_attention(const torch::Tensor& x, const AttentionContext& context);
  torch::Tensor project_queries(const torch::Tensor& x);
  KeysAndValues project_memory(const torch::Tensor& memory, const torch::Tensor& positions);
  ScaledDotProductOptions call_options(const AttentionContext& context) const;
  torch::Tensor mix(const Heads& heads, const AttentionContext& context);
  torch::Tensor mix_self(const Heads& heads, const AttentionContext& context);
  torch::Tensor mix_with_state(const Heads& heads, const AttentionContext& context);
  torch::Tensor mix_pattern(const torch::Tensor& x, const Heads& heads, const AttentionContext& context);
  torch::Tensor with_global_queries(const torch::Tensor& mixed, const torch::Tensor& x,
                                    const AttentionContext& context);
  torch::Tensor mix_remembered(const torch::Tensor& queries, const AttentionContext& context);
  torch::Tensor mix_with_relative_positions(const Heads& heads, const AttentionContext& context);
};

using Attention = MixerHolder<AttentionImpl>;

}  // namespace zoo

#pragma once
// Attention with learned vectors for relative positions, which are added to keys and values (Shaw et al.
// 2018).

#include <memory>
#include <optional>

#include "layers/attention/attention.h"

namespace zoo {

/// In self-attention the distances -n … n have vectors, and farther ones those of -n and n. It is computed
/// step by step instead of by the fused kernel.
class ShawAttentionImpl final : public Cloneable<ShawAttentionImpl, AttentionImpl>, public WeightOwner {
 public:
  /// max_distance: n ≥ 1. `options` must have no pattern. Throws c10::Error.
  ShawAttentionImpl(const AttentionOptions& options, int64_t max_distance);
  void visit_weights(const WeightVisitor& visit) const override;
  auto arguments() const { return std::tie(options, max_distance_); }
  void pretty_print(std::ostream& stream) const override;

  torch::Tensor relative_keys, relative_values;  // (2n+1, Dh)

 protected:
  torch::Tensor mix_self(const Heads& heads, const AttentionContext& context) override;
  torch::Tensor mix_with_state(const Heads& heads, const AttentionContext& context) override;

 private:
  int64_t max_distance_;
};

using ShawAttention = MixerHolder<ShawAttentionImpl>;

/// As count_attention(): the products with the vectors of distances are as large as those with keys and
/// values.
void count_shaw_attention(CostAccount& account, std::string name, const AttentionOptions& options,
                          const AttentionShape& shape);

}  // namespace zoo

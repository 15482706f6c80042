#pragma once
// Multi-head attention (Vaswani et al. 2017, section 3.2): Concat(head_1 … head_H) W^O. One module does self-
// and cross-attention, with grouped-query and multi-query heads. Positions, masks and states are arguments of
// each call. What other papers change is in classes that derive from it (shaw_attention.h,
// longformer_attention.h).

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "layers/attention/head_projections.h"
#include "layers/attention/scaled_dot_product.h"

namespace zoo {

class AttentionImpl : public Cloneable<AttentionImpl, HeadProjectionsImpl> {
 public:
  /// Throws c10::Error as HeadProjectionsImpl.
  explicit AttentionImpl(const AttentionOptions& options);
  /// x: (B, T, D) → (B, T, D)
  torch::Tensor forward(const torch::Tensor& x, const AttentionContext& context = {}) override;
  std::unique_ptr<LayerState> new_state(int64_t n_rows) const override;
  /// The keys and values of a memory (B, S, D), for AttentionContext::remembered. `positions` are
  /// AttentionContext::memory_positions.
  std::unique_ptr<MemoryState> remember(const torch::Tensor& memory, const torch::Tensor& positions = {});
  void pretty_print(std::ostream& stream) const override;

  Linear gate{nullptr};  // D → H·Dh; only with options.gate()
  torch::Tensor sinks;   // (H) float32; only with options.sinks()

 protected:
  /// The module's options as pretty_print() shows them.
  Description description(std::string_view type) const;
  double scale() const;
  /// Of weights: 0 in evaluation.
  double dropout_now() const { return is_training() ? options.dropout() : 0.0; }
  /// (B, H, T, Dh): attention over the keys of these heads.
  torch::Tensor mix(const Heads& heads, const AttentionContext& context);
  /// The same in self-attention.
  virtual torch::Tensor mix_self(const Heads& heads, const AttentionContext& context);
  /// The same over all keys that the state has, after it has read these.
  virtual torch::Tensor mix_with_state(const Heads& heads, const AttentionContext& context);
  /// The same over the keys of the pattern. x: (B, T, D), of which the heads were made.
  virtual torch::Tensor mix_pattern(const torch::Tensor& x, const Heads& heads,
                                    const AttentionContext& context);

 private:
  /// `mixed` (B, H, T, Dh) times the gate of x, if there is one, and projected back.
  torch::Tensor finished(const torch::Tensor& x, const torch::Tensor& mixed, const AttentionContext& context);
  Heads self_heads(const torch::Tensor& x, const AttentionContext& context);
  torch::Tensor cross_attention(const torch::Tensor& x, const AttentionContext& context);
  torch::Tensor project_queries(const torch::Tensor& x);
  KeysAndValues project_memory(const torch::Tensor& memory, const torch::Tensor& positions);
  ScaledDotProductOptions call_options(const AttentionContext& context) const;
  torch::Tensor mix_remembered(const torch::Tensor& queries, const AttentionContext& context);
};

using Attention = MixerHolder<AttentionImpl>;

/// The shape of one call of a mixer.
struct AttentionShape {
  int64_t batch_size = 1;  // B
  int64_t n_queries = 0;   // T
  int64_t n_keys = 0;      // S
};

/// What a class that derives from AttentionImpl does more often.
struct AttentionProducts {
  int64_t n_pairs = 2;     // products with an element for each pair: QKᵀ and that with V
  int64_t n_key_maps = 1;  // how often keys and values are projected
};

/// Counts the scores of all T·S pairs, including masked ones, as PyTorch's FlopCounterMode does. Only with a
/// pattern, it counts the visible pairs alone.
void count_attention(CostAccount& account, std::string name, std::string kind,
                     const AttentionOptions& options, const AttentionShape& shape,
                     const AttentionProducts& products = {});

}  // namespace zoo

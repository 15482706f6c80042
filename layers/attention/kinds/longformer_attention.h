#pragma once
// Attention over a window whose global tokens see all keys by projections of their own (Longformer, Beltagy
// et al. 2020, section 3.1).

#include <memory>
#include <optional>

#include "layers/attention/attention.h"
#include "layers/attention/window_pattern.h"

namespace zoo {

class LongformerAttentionImpl final : public Cloneable<LongformerAttentionImpl, AttentionImpl> {
 public:
  /// The pattern of `options` becomes `window`, which must be bidirectional and without global_queries; there
  /// are as many key heads as query heads. Throws c10::Error.
  LongformerAttentionImpl(const AttentionOptions& options, std::shared_ptr<const WindowPattern> window);
  auto arguments() const { return std::tie(options, window_); }
  void pretty_print(std::ostream& stream) const override;

  Linear global_q{nullptr}, global_k{nullptr}, global_v{nullptr};  // as q, k and v

 protected:
  torch::Tensor mix_pattern(const torch::Tensor& x, const Heads& heads,
                            const AttentionContext& context) override;

 private:
  std::shared_ptr<const WindowPattern> window_;
};

using LongformerAttention = MixerHolder<LongformerAttentionImpl>;

/// As count_attention(): keys and values are projected for the global queries, too.
void count_longformer_attention(CostAccount& account, std::string name, const AttentionOptions& options,
                                const AttentionShape& shape);

}  // namespace zoo

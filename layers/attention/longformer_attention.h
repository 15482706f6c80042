#pragma once
// Attention over a window whose global tokens see all keys by projections of their own (Longformer, Beltagy
// et al. 2020, section 3.1).

#include <memory>
#include <optional>

#include "layers/attention/attention.h"
#include "layers/attention/window_pattern.h"

namespace zoo {

class LongformerAttentionImpl final : public AttentionImpl {
 public:
  /// The pattern of `options` becomes `window`, which must be bidirectional and without global_queries; there
  /// are as many key heads as query heads. Throws c10::Error.
  LongformerAttentionImpl(const AttentionOptions& options, std::shared_ptr<const WindowPattern> window);
  void pretty_print(std::ostream& stream) const override;

  Linear global_q{nullptr}, global_k{nullptr}, global_v{nullptr};  // as q, k and v

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override;
  torch::Tensor mix_pattern(const torch::Tensor& x, const Heads& heads,
                            const AttentionContext& context) override;

 private:
  std::shared_ptr<const WindowPattern> window_;
};

using LongformerAttention = MixerHolder<LongformerAttentionImpl>;

}  // namespace zoo

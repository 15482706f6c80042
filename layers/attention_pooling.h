#pragma once
// One vector of many: the attention of a learned query over them, and a feed-forward network (pooling by
// multi-head attention, Lee et al. 2019, as in the vision transformers of Zhai et al. 2022 and in SigLIP).

#include <string>
#include <utility>

#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/attention/attention.h"
#include "layers/feed_forward.h"
#include "layers/weights/norm.h"

namespace zoo {

struct AttentionPoolingOptions {
  AttentionPoolingOptions(AttentionOptions attention, FeedForwardOptions feed_forward, NormOptions norm)
      : attention_(std::move(attention)), feed_forward_(std::move(feed_forward)), norm_(std::move(norm)) {}
  TORCH_ARG(AttentionOptions, attention);
  TORCH_ARG(FeedForwardOptions, feed_forward);
  /// Before the feed-forward network.
  TORCH_ARG(NormOptions, norm);
};

class AttentionPoolingImpl : public Cloneable<AttentionPoolingImpl>, public WeightOwner {
 public:
  explicit AttentionPoolingImpl(const AttentionPoolingOptions& options);
  /// x: (B, T, D) → (B, D): y + f(norm(y)), where y is what the query finds in x, without a residual
  /// connection to the query.
  torch::Tensor forward(const torch::Tensor& x);
  void visit_weights(const WeightVisitor& visit) const override;
  void pretty_print(std::ostream& stream) const override;

  AttentionPoolingOptions options;
  torch::Tensor query;  // (1, D)
  Attention attention{nullptr};
  Norm norm{nullptr};
  FeedForward feed_forward{nullptr};
};
TORCH_MODULE(AttentionPooling);

/// Adds the cost of such a module with path `name` for `batch_size` rows of `n_vectors`.
void count_attention_pooling(CostAccount& account, const std::string& name,
                             const AttentionPoolingOptions& options, int64_t batch_size, int64_t n_vectors);

}  // namespace zoo

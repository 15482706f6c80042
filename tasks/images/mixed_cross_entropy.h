#pragma once
// Cross-entropy for images that are mixed from two.

#include "tasks/objective.h"

namespace zoo {

/// Σ over the rows of share · CE(target) + (1 - share) · CE(other target), in nats, with the fields "shares"
/// and "other_targets" of data/images/image_batches.h (Zhang et al. 2018, Yun et al. 2019). Without these
/// fields, the cross-entropy of the targets.
class MixedCrossEntropy final : public Objective {
 public:
  explicit MixedCrossEntropy(double label_smoothing) : label_smoothing_(label_smoothing) {}

  int64_t n_targets(const Batch& batch) const override { return batch.n_targets(); }
  torch::Tensor loss(Model& model, const Batch& part) const override;

 private:
  double label_smoothing_;
};

}  // namespace zoo

#include "tasks/images/mixed_cross_entropy.h"

#include <torch/types.h>

namespace zoo {

torch::Tensor MixedCrossEntropy::loss(Model& model, const Batch& part) const {
  constexpr int64_t ignore_nothing = -100;
  const auto logits = model.logits(model.features(part)).to(torch::kFloat);
  const auto losses = [&](const torch::Tensor& targets) {  // (B)
    return at::cross_entropy_loss(logits, targets, {}, at::Reduction::None, ignore_nothing, label_smoothing_);
  };
  if (!part.fields.contains("shares")) return losses(part.targets).sum();
  const auto& shares = part.field("shares");
  return (shares * losses(part.targets) + (1 - shares) * losses(part.field("other_targets"))).sum();
}

}  // namespace zoo

#include "tasks/label_loss.h"

#include <torch/types.h>

namespace zoo {

torch::Tensor label_loss(Problem problem, const torch::Tensor& logits, const torch::Tensor& targets,
                         double label_smoothing) {
  constexpr int64_t ignore_nothing = -100;
  const auto scores = logits.to(torch::kFloat);
  switch (problem) {
    case Problem::single_label:
      return at::cross_entropy_loss(scores, targets, {}, at::Reduction::Sum, ignore_nothing, label_smoothing);
    case Problem::multi_label: {
      const auto smoothed =
          label_smoothing > 0 ? targets * (1 - label_smoothing) + label_smoothing / 2 : targets;
      return at::binary_cross_entropy_with_logits(scores, smoothed, {}, {}, at::Reduction::Sum) /
             static_cast<double>(scores.size(1));
    }
    case Problem::regression:
      return at::mse_loss(scores, targets, at::Reduction::Sum) / static_cast<double>(scores.size(1));
  }
  C10_THROW_ERROR(ValueError, "unknown Problem");
}

torch::Tensor label_losses(Problem problem, const torch::Tensor& logits, const torch::Tensor& targets) {
  const auto scores = logits.to(torch::kFloat);
  switch (problem) {
    case Problem::single_label:
      return at::cross_entropy_loss(scores, targets, {}, at::Reduction::None);
    case Problem::multi_label:
      return at::binary_cross_entropy_with_logits(scores, targets, {}, {}, at::Reduction::None).mean(1);
    case Problem::regression:
      return at::mse_loss(scores, targets, at::Reduction::None).mean(1);
  }
  C10_THROW_ERROR(ValueError, "unknown Problem");
}

torch::Tensor LabelLoss::loss(Model& model, const Batch& part) const {
  return label_loss(problem_, model.logits(model.features(part)), part.targets, label_smoothing_);
}

}  // namespace zoo

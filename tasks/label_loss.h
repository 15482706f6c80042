#pragma once
// The losses of classifiers: of one class, of several labels, of numbers.

#include "data/labels.h"
#include "tasks/objective.h"

namespace zoo {

/// The loss of logits (N, C), summed over the N targets, a float scalar:
///   single_label  cross-entropy; targets (N) int64
///   multi_label   binary cross-entropy, the mean over the labels; targets (N, C) float
///   regression    squared error, the mean over the numbers; targets (N, C) float
/// Divided by N these are the losses of transformers' classifiers (loss/loss_utils.py). Label smoothing ε
/// draws classes to 1/C, and labels to 1/2.
torch::Tensor label_loss(Problem problem, const torch::Tensor& logits, const torch::Tensor& targets,
                         double label_smoothing = 0);

/// The same for each target, without label smoothing: (N) float.
torch::Tensor label_losses(Problem problem, const torch::Tensor& logits, const torch::Tensor& targets);

/// label_loss() of model.logits(model.features(batch)).
class LabelLoss final : public Objective {
 public:
  LabelLoss(Problem problem, double label_smoothing) : problem_(problem), label_smoothing_(label_smoothing) {}

  int64_t n_targets(const Batch& batch) const override { return batch.n_targets(); }
  torch::Tensor loss(Model& model, const Batch& part) const override;

 private:
  Problem problem_;
  double label_smoothing_;
};

}  // namespace zoo

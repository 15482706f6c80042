#pragma once
// The losses of CLIP and SigLIP over the pairs of a batch.

#include <torch/types.h>

#include "models/comparing_model.h"
#include "tasks/objective.h"

namespace zoo {

/// Each picture of a batch with its text, against all other texts and pictures of the batch. Of the scores
/// (B, B) of pictures and texts, by PairScores:
///   softmax  Σ_i (H_i + H'_i) / 2, the cross-entropies of row i and of column i, whose class is i (CLIP,
///            Radford et al. 2021, figure 3)
///   sigmoid  -Σ_ij log σ(± s_ij), + for the pairs i = j (SigLIP, Zhai et al. 2023, section 3.2)
/// A batch has B targets. Its rows must go through the model together.
class ContrastiveLoss final : public Objective {
 public:
  int64_t n_targets(const Batch& batch) const override { return batch.n_rows(); }
  /// Throws UsageError for a model that compares nothing.
  torch::Tensor loss(Model& model, const Batch& part) const override;
};

/// The same of scores (B, B): a scalar.
torch::Tensor contrastive_loss(const torch::Tensor& scores, PairScores kind);

}  // namespace zoo

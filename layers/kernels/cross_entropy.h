#pragma once
// The loss of a classifier over the vocabulary, with its gradient made in the same pass.

#include <torch/types.h>

namespace zoo {

struct CrossEntropyOptions {
  /// The target distribution is (1-ε)·one-hot + ε/V (Szegedy et al. 2016; torch.nn.CrossEntropyLoss).
  double label_smoothing = 0.0;
  /// What the sum is multiplied by, such as 1/N for a mean.
  double weight = 1.0;
};

/// weight · Σ over the rows of the cross-entropy of `targets` (N) int64 under `logits` (N, V), in nats: a
/// float scalar. On the CPU, where a gradient is wanted, the logits' memory becomes that of the gradient:
/// nobody else may look at them afterwards. Throws c10::Error where a target is not a class.
torch::Tensor cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& targets,
                                const CrossEntropyOptions& options = {});

}  // namespace zoo

#pragma once
// Cross-entropy over the vocabulary, with its gradient computed in the same pass.

#include <torch/types.h>

namespace zoo {

struct CrossEntropyOptions {
  /// The target distribution is (1-ε)·one-hot + ε/V (Szegedy et al. 2016; torch.nn.CrossEntropyLoss).
  double label_smoothing = 0.0;
  /// Factor of the sum, such as 1/N for a mean.
  double weight = 1.0;
};

struct LossWithGradient {
  torch::Tensor loss;      // a float scalar
  torch::Tensor gradient;  // of the logits: their shape and type
};

/// cross_entropy_sum() and its gradient, without autograd. The gradient overwrites the logits, except where
/// they have 16 bits on the CPU: do not read them afterwards.
LossWithGradient cross_entropy_with_gradient(const torch::Tensor& logits, const torch::Tensor& targets,
                                             const CrossEntropyOptions& options = {});

/// weight · Σ over the rows of the cross-entropy of `targets` (N) int64 under `logits` (N, V), in nats: a
/// float scalar. If a gradient is needed, it overwrites the logits: do not read them afterwards. Throws
/// c10::Error if a target is not a class; on a GPU its kernels do.
torch::Tensor cross_entropy_sum(const torch::Tensor& logits, const torch::Tensor& targets,
                                const CrossEntropyOptions& options = {});

}  // namespace zoo

#pragma once
// Cross-entropy over classes: tokens or labels.

#include <optional>

#include "tasks/objective.h"

namespace zoo {

struct TokenCrossEntropyOptions {
  double label_smoothing = 0.0;
  /// Logits are made and used in chunks of at most this many bytes, so that a large vocabulary does not need
  /// more memory. A chunk has at least `fewest_targets` targets, however. Default: 32 MiB on a CPU, so that a
  /// chunk fits into the cache, and 1 GiB on a GPU, which needs large products to be fast.
  std::optional<int64_t> logits_bytes = std::nullopt;
  int64_t fewest_targets = 64;
};

/// Σ over batch.targets of the cross-entropy under model.logits(model.features(batch)), in nats.
class TokenCrossEntropy final : public Objective {
 public:
  explicit TokenCrossEntropy(const TokenCrossEntropyOptions& options = {}) : options_(options) {}

  int64_t n_targets(const Batch& batch) const override { return batch.n_targets(); }
  torch::Tensor loss(Model& model, const Batch& part) const override;
  LossAndGradients differentiate(Model& model, const Batch& part,
                                 const GradientRequest& request) const override;

 private:
  int64_t targets_at_once(const Model& model) const;
  LossAndGradients differentiate_in_chunks(Model& model, const Batch& part, const torch::Tensor& features,
                                           int64_t chunk, const GradientRequest& request) const;

  TokenCrossEntropyOptions options_;
};

}  // namespace zoo

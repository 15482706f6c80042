#pragma once
// Forward and backward pass of one optimiser step.

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/types.h>

#include "models/model.h"
#include "training/precision.h"

namespace zoo {

struct GradientOptions {
  double label_smoothing = 0.0;
  /// Logits are made and used in pieces of at most so many bytes, so that a large vocabulary costs no memory,
  /// but of no fewer targets than `fewest_targets`.
  int64_t logits_bytes = int64_t{32} << 20;
  int64_t fewest_targets = 64;
  /// Most parts of a batch that are worked on at the same time, a thread each; 0 = as many as there are
  /// threads. More than one needs a model on the CPU.
  int64_t n_parts = 0;
  Precision precision = Precision::fp32;  // resolved
};

/// Adds the gradients of batches to those of the parameters.
///
/// On the CPU the rows of a batch are shared among the threads, each of which takes its part through the
/// whole model alone: threads that met in every operation would spend much of the time of a small model
/// waiting for each other. The parts' gradients are added in a fixed order, and each part has random numbers
/// of its own (layers/random.h), so the result is the same whichever thread is first; with another number of
/// threads it differs by rounding, and by the elements that dropout takes. Each thread holds gradients of its
/// own, so a model that is too large for that, or a batch with too few rows, is worked on by all threads
/// together.
class GradientAccumulator {
 public:
  GradientAccumulator(std::shared_ptr<Model> model, const GradientOptions& options);

  /// Adds the gradient of Σ cross-entropy / n_targets over the targets of `batch` (on the model's device, or
  /// on the CPU), and returns that loss, a scalar without gradient on the model's device. n_targets are those
  /// of all batches of a step: every target weighs the same, whichever batch it is in. The gradient, not the
  /// loss, is multiplied by `scale`.
  torch::Tensor add(const Batch& batch, int64_t n_targets, double scale = 1.0);

 private:
  using Tensors = std::vector<torch::Tensor>;
  /// Of one part of a batch.
  struct Result {
    torch::Tensor loss;
    Tensors gradients;  // one a parameter; undefined where it has none
  };

  int64_t n_parts(const Batch& batch) const;
  Result differentiate(const Batch& batch, double weight) const;
  Result differentiate_in_pieces(const Batch& batch, const torch::Tensor& features, int64_t piece,
                                 double weight) const;

  std::shared_ptr<Model> model_;
  GradientOptions options_;
  Tensors parameters_;
  int64_t parameter_bytes_ = 0;
};

}  // namespace zoo

#pragma once
// Forward and backward pass of one optimiser step.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "models/model.h"
#include "training/config/precision.h"
#include "training/parallel/gradient_arrivals.h"
#include "training/parallel/gradient_reducer.h"

namespace zoo {

/// What is done where a GPU has too little memory for the rows that go through the model at once.
enum class OutOfMemory { fail, take_fewer_rows };

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
  /// Most rows of a batch that go through the model at once, those of all threads together; the others follow
  /// after them. 0 = all.
  int64_t rows_at_once = 0;
  OutOfMemory out_of_memory = OutOfMemory::fail;
};

/// Makes the gradients of optimiser steps.
///
/// On the CPU the rows of a batch are shared among the threads, each of which takes its part through the
/// whole model alone: threads that met in every operation would spend much of the time of a small model
/// waiting for each other. The parts' gradients are added in a fixed order, and each part has random numbers
/// of its own (base/random.h), so the result is the same whichever thread is first; with another number of
/// threads it differs by rounding, and by the elements that dropout takes. Each thread holds gradients of its
/// own, so a model that is too large for that, or a batch with too few rows, is worked on by all threads
/// together.
///
/// Where processes train together, each takes its share of the rows of every batch, and the gradients are
/// summed over them once a step, while the last batch's backward pass is going on.
class GradientAccumulator {
 public:
  GradientAccumulator(std::shared_ptr<Model> model, const GradientOptions& options);
  /// One process of several, all of which call differentiate() with the same batches. `processes` outlives
  /// this object.
  GradientAccumulator(std::shared_ptr<Model> model, const GradientOptions& options,
                      const ProcessGroup& processes, const ReducerOptions& reducer = {});
  ~GradientAccumulator();
  GradientAccumulator(const GradientAccumulator&) = delete;
  GradientAccumulator& operator=(const GradientAccumulator&) = delete;

  /// Gives the parameters, which have none yet, the gradients of Σ cross-entropy / n over the n targets of
  /// all `batches` (on the model's device, or on the CPU): every target weighs the same, whichever batch it
  /// is in. Returns each batch's part of that loss, (n_batches) on the model's device; of several processes
  /// each returns what its own rows add. The gradients, not the losses, are multiplied by `scale`.
  ///
  /// With OutOfMemory::take_fewer_rows, halves rows_at_once and begins again where memory does not suffice;
  /// throws TrainingError where it does not suffice for one row.
  torch::Tensor differentiate(const std::vector<Batch>& batches, double scale = 1.0);

  int64_t rows_at_once() const { return options_.rows_at_once; }
  void set_rows_at_once(int64_t n_rows) { options_.rows_at_once = n_rows; }
  /// Takes all of `rows` through the model and back, and keeps nothing: what it costs can be seen beforehand.
  void rehearse(const Batch& rows) const;
  /// Of the parameters' gradients, once.
  int64_t bytes() const { return parameter_bytes_; }

 private:
  using Tensors = std::vector<torch::Tensor>;
  /// Of one part of a batch.
  struct Result {
    torch::Tensor loss;
    Tensors gradients;  // one a parameter; undefined where it has none
  };
  /// Where the random numbers of a slice come from: for each of its parts, in all processes, from another
  /// place.
  struct Draws {
    uint64_t seed, slice = 0, first_part = 0;
    uint64_t place(size_t part) const { return slice << 32 | (first_part + part); }
  };
  torch::Tensor try_to_differentiate(const std::vector<Batch>& batches, double scale);
  void take_fewer_rows(const std::vector<Batch>& batches);
  std::optional<Batch> own_rows(const Batch& batch) const;
  std::vector<std::optional<Batch>> slices(const Batch& batch) const;
  int64_t most_parts() const;
  int64_t n_parts(const Batch& rows) const;
  std::vector<Result> differentiate_parts(const std::optional<Batch>& rows, size_t n, double weight,
                                          const Draws& draws) const;
  Result differentiate_part(const Batch& part, double weight, size_t index) const;
  Result differentiate_in_pieces(const Batch& part, const torch::Tensor& features, int64_t piece,
                                 double weight, size_t index) const;
  void accumulate(std::vector<Result> results);

  std::shared_ptr<Model> model_;
  GradientOptions options_;
  Tensors parameters_;
  int64_t parameter_bytes_ = 0;
  const ProcessGroup* processes_ = nullptr;  // null = this one alone
  std::unique_ptr<GradientReducer> reducer_;
  std::vector<unsigned> hooks_;                 // one a parameter, where there is a reducer
  std::unique_ptr<GradientArrivals> arrivals_;  // during the last batch of a step, where there is a reducer
};

}  // namespace zoo

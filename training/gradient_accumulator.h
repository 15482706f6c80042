#pragma once
// Forward and backward pass of one optimiser step.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "data/batch_source.h"
#include "models/model.h"
#include "models/precision.h"
#include "tasks/objective.h"
#include "training/gradient_collector.h"
#include "training/gradient_reducer.h"

namespace zoo {

/// The reaction to a GPU without enough memory for the rows that go through the model at once.
enum class OutOfMemory { fail, take_fewer_rows };

/// When several processes sum their gradients: during the last backward pass of a step, or when the caller
/// says so, because the passes are recorded, which an exchange cannot be.
enum class GradientExchange { in_last_pass, by_caller };

struct GradientOptions {
  /// The most parts of a batch that are processed at the same time, each by its own thread; 0 = the number of
  /// threads. More than one part needs a model on the CPU.
  int64_t n_parts = 0;
  Precision precision = Precision::fp32;  // resolved
  /// The most rows of a batch that go through the model at once, counted over all threads; the other rows
  /// follow. 0 = all.
  int64_t micro_batch_size = 0;
  OutOfMemory out_of_memory = OutOfMemory::fail;
};

/// Makes the gradients of optimiser steps.
///
/// On the CPU the threads share the rows of a batch, and each thread takes its part through the whole model
/// alone: threads that share every operation of a small model spend much time waiting for each other. The
/// parts' gradients are added in a fixed order, so the result does not depend on which thread is first. What
/// dropout drops of a row depends on a seed and on the row's place in the step (base/random.h). So with
/// another number of threads or processes, or another micro_batch_size, the result differs by rounding only.
/// (On a GPU, dropout is LibTorch's, and depends on them.) Each thread holds its own gradients. If the model
/// is too large for that, or the batch has too few rows, all threads share every operation. They also do so
/// for a model that mixes rows: all rows of a batch go through it together.
///
/// If several processes train together, each takes its share of the rows of every batch. The gradients are
/// summed over the processes once per step, during the backward pass of the last batch. If they have divided
/// the experts (training/divided_experts.h), all take equally many micro-batches through the model at the
/// same time, with all threads in each; a process without rows of its own takes one that does not count.
class GradientAccumulator {
 public:
  GradientAccumulator(std::shared_ptr<Model> model, std::shared_ptr<const Objective> objective,
                      const GradientOptions& options = {});
  /// For one of several processes. All of them call differentiate() with the same batches. `processes`
  /// outlives this object. Throws ConfigError for a model that mixes rows.
  GradientAccumulator(std::shared_ptr<Model> model, std::shared_ptr<const Objective> objective,
                      const GradientOptions& options, const ProcessGroup& processes,
                      const ReducerOptions& reducer = {});
  ~GradientAccumulator();
  GradientAccumulator(const GradientAccumulator&) = delete;
  GradientAccumulator& operator=(const GradientAccumulator&) = delete;

  /// Gives the parameters, which have no gradients yet, the gradients of the objective's loss over the n
  /// targets of all `batches` divided by n. The batches are on the model's device or on the CPU. Returns each
  /// batch's part of that loss, (n_batches) on the model's device; each of several processes returns the part
  /// of its own rows. Multiplies the gradients, but not the losses, by `scale`.
  ///
  /// `out_of_memory`: in place of the option. With OutOfMemory::take_fewer_rows, halves micro_batch_size and
  /// begins again if there is not enough memory; throws TrainingError if there is not enough for one row.
  /// Throws ConfigError for a model that mixes rows if micro_batch_size() is less than a batch.
  ///
  /// With GradientExchange::by_caller the gradients are those of this process's rows, until exchange() has
  /// summed them.
  torch::Tensor differentiate(const BatchSequence& batches, double scale = 1.0,
                              std::optional<OutOfMemory> out_of_memory = std::nullopt,
                              GradientExchange exchange = GradientExchange::in_last_pass);
  /// Sums the parameters' gradients over the processes. Collective.
  void exchange();
  /// The tensors that get gradients.
  const std::vector<torch::Tensor>& parameters() const { return parameters_; }

  int64_t micro_batch_size() const { return options_.micro_batch_size; }
  void set_micro_batch_size(int64_t n_rows) { options_.micro_batch_size = n_rows; }
  /// Takes all of `rows` through the model and back, and keeps nothing. Shows beforehand how much memory that
  /// takes.
  void rehearse(const Batch& rows) const;
  /// The size of one set of the parameters' gradients.
  int64_t bytes() const { return parameter_bytes_; }

 private:
  torch::Tensor try_to_differentiate(const BatchSequence& batches, double scale, uint64_t seed,
                                     GradientExchange exchange);
  void take_fewer_rows(const BatchSequence& batches);
  struct MicroBatch {
    std::optional<Batch> rows;
    double share = 1;  // of the weight of its targets; 0: the rows count for nothing
  };
  std::optional<Batch> own_rows(const Batch& batch) const;
  std::vector<MicroBatch> micro_batches(const Batch& batch) const;
  std::vector<MicroBatch> equally_many(const Batch& batch) const;
  int64_t most_parts() const;
  int64_t n_parts(const Batch& rows) const;
  std::vector<LossAndGradients> differentiate_parts(const std::optional<Batch>& rows, size_t n, double weight,
                                                    uint64_t seed) const;
  LossAndGradients differentiate_part(const Batch& part, double weight, size_t index) const;
  void accumulate(std::vector<LossAndGradients> results);

  std::shared_ptr<Model> model_;
  std::shared_ptr<const Objective> objective_;
  GradientOptions options_;
  std::vector<torch::Tensor> parameters_;
  std::vector<std::shared_ptr<ExpertsImpl>> experts_;  // whose losses of balance have the weight of targets
  bool exchanges_ = false;                             // tokens with other processes that have other experts
  int64_t parameter_bytes_ = 0;
  const ProcessGroup* processes_ = nullptr;  // null = a process alone
  std::unique_ptr<GradientReducer> reducer_;
  std::vector<unsigned> hooks_;  // one per parameter, if there is a reducer
  /// Exists during the last batch of a step, if there is a reducer.
  std::unique_ptr<GradientCollector> collector_;
};

/// Throws TrainingError: not even one sequence fits into the memory. The message says what to do and ends
/// with `details`.
[[noreturn]] void fail_out_of_memory(std::string_view details = {});

}  // namespace zoo

#pragma once
// What training changes: a model, its optimiser, and what belongs to them. When and on what it is changed is
// the trainer's.

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "models/model.h"
#include "training/config/precision.h"
#include "training/gradients/gradient_accumulator.h"
#include "training/gradients/step_graph.h"
#include "training/optimizers/optimizer.h"
#include "training/optimizers/shards.h"
#include "training/parallel/process_group.h"
#include "training/rows_at_once.h"
#include "training/runs/checkpoint.h"
#include "training/runs/weight_average.h"
#include "training/tasks/experiment.h"
#include "training/tasks/task.h"

namespace zoo {

class Learner {
 public:
  /// Moves `model` to `device`, and trains it there as `experiment.training` says. Both `experiment` and
  /// `processes` outlive this object.
  Learner(const Experiment& experiment, std::shared_ptr<Model> model, const ProcessGroup& processes,
          torch::Device device);

  Model& model() { return *model_; }
  Precision precision() const { return precision_; }

  /// How many rows go through the model at once; 0 = all.
  int64_t rows_at_once() const { return gradients_->rows_at_once(); }
  /// Lets as many go as memory allows: in all processes those of the one with the least room. Of `limits`,
  /// the device and the number of processes are set here. Collective.
  void fit_into_memory(Task& task, RowsAtOnceOptions limits);

  struct Gradients {
    std::vector<double> losses;  // of each batch; of several processes what the own rows add
    double norm;                 // of all gradients, before they were clipped
  };
  /// Makes the gradients of a step, clipped. The pass back is done with the loss times `scale`. Waits for the
  /// device, the only time in a step. Collective.
  Gradients differentiate(const std::vector<Batch>& batches, double scale);
  /// Takes the step, with learning rate `lr`. Collective.
  void step(double lr);
  /// Frees the gradients, whether or not the step was taken.
  void forget_gradients() { optimizer_->zero_grad(); }

  /// While the result lives, the model has the averaged weights; null where none are kept.
  std::unique_ptr<SubstituteWeights> use_average();

  /// Gives all processes the weights of the first one, whatever theirs were made from. Collective.
  void share_weights();
  /// All there is to save: in the first process, in the others without the optimiser's state. Collective.
  TrainedParts gather();
  /// Restores what this process has of a checkpoint. Throws CheckpointError.
  TrainingState load(const std::filesystem::path& checkpoint);

 private:
  /// Each batch's loss, and the norm: (n_batches + 1) on the device.
  torch::Tensor losses_and_norm(const std::vector<Batch>& batches, double scale);

  const TrainingConfig& config_;
  const ProcessGroup& processes_;
  torch::Device device_;
  Precision precision_;
  std::shared_ptr<Model> model_;
  std::optional<Shards> shards_;
  std::unique_ptr<GradientAccumulator> gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<StepGraph> graph_;  // where steps are recorded
  std::unique_ptr<MovingAverage> average_;
};

}  // namespace zoo

#pragma once
// Everything that training changes: a model, its optimiser, and what belongs to them. The trainer decides
// when a step is taken, and on which batches.

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "base/late_numbers.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/weight_average.h"
#include "layers/experts.h"
#include "layers/weights/weights.h"
#include "models/model.h"
#include "models/precision.h"
#include "optimizers/optimizer.h"
#include "optimizers/shards.h"
#include "parallel/process_group.h"
#include "tasks/experiment.h"
#include "tasks/task.h"
#include "training/divided_experts.h"
#include "training/gradient_accumulator.h"
#include "training/micro_batch_size.h"
#include "training/step_graph.h"

namespace zoo {

class Learner {
 public:
  /// Moves `model` to `device`, and trains it there as `experiment.training` says. `experiment` and
  /// `processes` outlive this object.
  Learner(const Experiment& experiment, std::shared_ptr<Model> model,
          std::shared_ptr<const Objective> objective, const ProcessGroup& processes, torch::Device device);

  Model& model() { return *model_; }
  Precision precision() const { return precision_; }

  /// The number of rows that go through the model at once; 0 = all.
  int64_t micro_batch_size() const { return gradients_->micro_batch_size(); }
  /// Sets this number as memory allows; the process with the least memory decides for all. The device and the
  /// number of processes in `limits` are set here. Collective.
  void fit_into_memory(Task& task, MicroBatchOptions limits);

  struct Gradients {
    std::vector<double> losses;  // one per batch; each of several processes has the part of its own rows
    double norm;                 // of all gradients, before clipping
  };
  /// What is known of the gradients as soon as the device has made them.
  class LateGradients {
   public:
    explicit LateGradients(const torch::Tensor& losses_and_norm) : numbers_(losses_and_norm) {}
    Gradients read() const;

   private:
    LateNumbers numbers_;
  };
  /// Makes the gradients of a step and clips them. The backward pass uses the loss times `scale`. Does not
  /// wait for the device. Collective.
  LateGradients differentiate(const BatchSequence& batches, double scale);
  /// Why no step is recorded, though training.cuda_graphs is auto; said once.
  std::optional<std::string> new_obstacle();
  /// Takes the step, with learning rate `lr`. Collective.
  void step(double lr);
  /// Frees the gradients, whether or not the step was taken.
  void forget_gradients() { optimizer_->zero_grad(); }

  /// While the result lives, the model has the averaged weights. Null if there is no average.
  std::unique_ptr<SubstituteWeights> use_average();

  /// While the result lives, the model has all experts, also if the processes have divided them; null if they
  /// have not. Then it can be evaluated and saved. Collective.
  std::unique_ptr<DividedExperts::Whole> whole_model() const;

  /// Gives all processes the weights of the first one, except experts that they have divided. Collective.
  void share_weights();
  /// Everything that a checkpoint holds, complete in the first process only: the others get it without the
  /// state of the optimiser and of the average. The model is as it is: see whole_model(). Collective.
  TrainedParts gather();
  /// Restores this process's part of a checkpoint. `base`: as in TrainedParts. Throws CheckpointError.
  TrainingState load(const std::filesystem::path& checkpoint, const std::string& base = {});

 private:
  void prepare_graph(const Experiment& experiment);
  /// Lets steps renew the copies in 16 bits, unless shards change parameters after them.
  void share_copies();
  std::vector<Batch> checked(const BatchSequence& batches) const;
  /// Makes gradients, times `scale`. Returns the losses of the batches, (n_batches) on the device.
  torch::Tensor losses(const BatchSequence& batches, double scale, GradientExchange exchange);
  /// Clips the gradients, which are complete. Returns the losses, then the norm: (n_batches + 1).
  torch::Tensor with_norm(const torch::Tensor& losses, double scale);

  const TrainingConfig& config_;
  const ProcessGroup& processes_;
  torch::Device device_;
  Precision precision_;
  std::shared_ptr<Model> model_;
  std::unique_ptr<RoundedWeights> rounded_;  // of the model, in 16 bits on a GPU; null = there are none
  std::vector<std::shared_ptr<ExpertsImpl>> experts_;  // of the model
  std::unique_ptr<DividedExperts> divided_;            // null = each process has all experts
  std::optional<Shards> shards_;
  std::unique_ptr<GradientAccumulator> gradients_;
  std::unique_ptr<Optimizer> optimizer_;
  bool steps_renew_copies_ = false;
  std::unique_ptr<StepGraph> graph_;  // null = steps are not recorded
  bool has_told_obstacle_ = false;
  std::unique_ptr<MovingAverage> average_;
};

}  // namespace zoo

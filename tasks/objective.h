#pragma once
// Training minimises an objective, which computes the loss of a model on a part of a batch, and its
// gradients. Every task has a default objective; `training.objective` may name another.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "data/batch.h"
#include "io/config/registry.h"
#include "models/model.h"

namespace zoo {

/// The gradients of some parameters, in their order; undefined where a parameter has none.
using Gradients = std::vector<torch::Tensor>;

/// The gradients of `inputs` for an output with the gradient `output_gradient`; undefined = the output is a
/// scalar, with the gradient 1. A gradient has the strides of its input, and is undefined if the output does
/// not depend on the input.
Gradients gradients_of(const torch::Tensor& output, const torch::Tensor& output_gradient,
                       const std::vector<torch::Tensor>& inputs);

/// sums[i] += terms[i]; an undefined tensor is zero.
void add_gradients(Gradients& sums, const Gradients& terms);

/// The arguments of Objective::differentiate().
struct GradientRequest {
  /// All parameters of the model that are trained.
  const std::vector<torch::Tensor>& parameters;
  /// Factor on the loss.
  double weight = 1.0;
  /// To be called once, just before the last backward pass through the parameters, with the gradients of
  /// earlier passes (one per parameter, or none at all). Processes that train together send gradients as soon
  /// as the last pass makes them.
  std::function<void(Gradients earlier)> before_last_pass = [](const Gradients&) {};
};

struct LossAndGradients {
  torch::Tensor loss;   // weight · loss, a float scalar without a graph
  Gradients gradients;  // of request.parameters, summed over all backward passes
};

class Objective {
 public:
  virtual ~Objective() = default;

  /// The number of targets in a batch. The loss of a step is the sum of its batches' losses divided by the
  /// sum of their targets, so every target has the same weight.
  virtual int64_t n_targets(const Batch& batch) const = 0;
  /// The loss of some rows of a batch, summed over their targets: a float scalar. If gradients are recorded,
  /// it may overwrite results of the model.
  virtual torch::Tensor loss(Model& model, const Batch& part) const = 0;
  /// weight · loss() and its gradients. Several threads may call this for different parts. The default is one
  /// backward pass; an objective can save memory with several.
  virtual LossAndGradients differentiate(Model& model, const Batch& part,
                                         const GradientRequest& request) const;
};

/// Keys of `training:` that are meant for every objective.
struct ObjectiveContext {
  double label_smoothing = 0.0;
};

/// A type of `training.objective`. objective_types().add() adds types to those of the library.
struct ObjectiveType : TypeInfo {
  /// Null for the type "task", which stands for the task's default objective.
  std::function<std::shared_ptr<const Objective>(const Selection& selection, const ObjectiveContext& context)>
      make = nullptr;
};

inline std::string_view what_lacks(const ObjectiveType& type) {
  return type.make || type.name == "task" ? std::string_view() : "make, which builds the objective";
}

/// "task": the task's default; "cross_entropy": TokenCrossEntropy; "ctc": CtcObjective.
Registry<ObjectiveType>& objective_types();

}  // namespace zoo

#pragma once
// Optimisers over the parameters of a model. The formulas are in training/optimizers/.

#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "io/safetensors.h"
#include "training/config/training_config.h"
#include "training/optimizers/parameters.h"
#include "training/optimizers/update_rule.h"
#include "training/parallel/process_group.h"

namespace zoo {

/// Updates parameters from their gradients, by the rule that the configuration names; with muon the matrices
/// of the hidden layers by Muon and all others by AdamW. A parameter without a gradient is left as it is, and
/// is not decayed either.
class Optimizer {
 public:
  /// `parameters` on the device where they will stay; the optimiser shares them. They need not be all of a
  /// model's.
  Optimizer(const OptimizerConfig& config, const std::vector<Parameter>& parameters);

  /// One step with learning rate `lr`.
  void step(double lr);
  /// Frees the gradients.
  void zero_grad();
  /// The gradients that there are.
  std::vector<torch::Tensor> gradients() const;

  /// The state by name, `PARAMETER.exp_avg` and the like. Shared: load by copying into it.
  TensorMap state() const;

 private:
  struct Slot {
    Parameter parameter;
    std::vector<StateTensor> state;
  };
  struct Group {
    std::shared_ptr<const UpdateRule> rule;
    double lr_factor;
    double weight_decay;
    std::vector<Slot> slots;
  };

  std::vector<Group> groups_;
};

/// Scales `gradients` so that their norm, taken over all of them, is at most `max_norm` (0 = leave them), as
/// torch.nn.utils.clip_grad_norm_. Returns the norm before, a scalar on their device: nothing waits for it
/// here. Where processes have each some of the gradients, the norm is taken over those of all, collectively.
torch::Tensor clip_grad_norm(const std::vector<torch::Tensor>& gradients, double max_norm,
                             const ProcessGroup* dealt_out_to = nullptr);

}  // namespace zoo

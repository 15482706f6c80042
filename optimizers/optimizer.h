#pragma once
// Optimisers over the parameters of a model. Their formulas are UpdateRules (update_rule.h).

#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "io/safetensors.h"
#include "optimizers/optimizer_config.h"
#include "optimizers/parameters.h"
#include "optimizers/update_rule.h"
#include "parallel/process_group.h"

namespace zoo {

/// Updates parameters from their gradients, by the rule that the configuration names. Beside a rule for the
/// matrices of the hidden layers, such as Muon, AdamW updates all other parameters. Parameters may have a
/// learning rate and a weight decay of their own (Parameter). A parameter without a gradient stays as it is,
/// without decay.
class Optimizer {
 public:
  /// `parameters` are all or some parameters of a model, on their final device; the optimiser shares them.
  Optimizer(const OptimizerConfig& config, const std::vector<Parameter>& parameters);

  /// One step with learning rate `lr`.
  void step(double lr);
  /// Steps renew `rounded`, a copy of a parameter in 16 bits, from now on. Does nothing if this optimiser
  /// does not have the parameter.
  void keep_copy(const torch::Tensor& parameter, const torch::Tensor& rounded);
  /// Frees the gradients.
  void zero_grad();
  /// The gradients of those parameters that have one.
  std::vector<torch::Tensor> gradients() const;

  /// The state by name, such as `PARAMETER.exp_avg`. The tensors are shared: load a state by copying into
  /// them.
  TensorMap state() const;

 private:
  struct Slot {
    Parameter parameter;
    std::vector<StateTensor> state;
    torch::Tensor rounded = {};  // undefined: it has no copy
  };
  struct Group {
    std::shared_ptr<const UpdateRule> rule;
    double lr_factor;
    double weight_decay;
    std::vector<Slot> slots;
  };

  size_t group_for(const Parameter& parameter, size_t usual, size_t first_own);

  std::vector<Group> groups_;
};

/// Scales `gradients` so that their norm, taken over all of them, is at most `max_norm` (0 = no limit), like
/// torch.nn.utils.clip_grad_norm_. Returns the norm before scaling, a scalar on their device, without waiting
/// for the device. With `sharded_over`, each process has some of the gradients, and the norm is taken over
/// the gradients of all processes; collective. All of them have `shared`, which are scaled, too.
torch::Tensor clip_grad_norm(const std::vector<torch::Tensor>& gradients, double max_norm,
                             const ProcessGroup* sharded_over = nullptr,
                             const std::vector<torch::Tensor>& shared = {});

}  // namespace zoo

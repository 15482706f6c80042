#pragma once
// AdamW, Adam and SGD over the parameters of a model, on LibTorch's fused kernels.

#include <string>
#include <vector>

#include <torch/ordered_dict.h>
#include <torch/types.h>

#include "io/safetensors.h"
#include "training/training_config.h"

namespace zoo {

/// Updates parameters from their gradients.
///   adamw  Loshchilov & Hutter 2019: decay apart from the gradient
///   adam   Kingma & Ba 2015, decay added to the gradient
///   sgd    with momentum as torch.optim.SGD: v = momentum·v + g, p -= lr·v
/// Tensors of fewer than two dimensions (norms, biases) are not decayed unless decay_all. A parameter without
/// a gradient is left as it is.
class Optimizer {
 public:
  /// `parameters` by name, on the device where they will stay; the optimiser shares them.
  Optimizer(const OptimizerConfig& config, const torch::OrderedDict<std::string, torch::Tensor>& parameters);

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
    std::string name;
    torch::Tensor parameter;
    torch::Tensor exp_avg, exp_avg_sq, step;  // adamw, adam
    torch::Tensor momentum_buffer;            // sgd with momentum
  };
  struct Group {
    double weight_decay = 0;
    std::vector<Slot> slots;
  };
  void step_adam(const Group& group, double lr);
  void step_sgd(const Group& group, double lr);

  OptimizerConfig config_;
  std::vector<Group> groups_;
};

/// Scales `gradients` so that their norm, taken over all of them, is at most `max_norm` (0 = leave them), as
/// torch.nn.utils.clip_grad_norm_. Returns the norm before, a scalar on their device: nothing waits for it
/// here.
torch::Tensor clip_grad_norm(const std::vector<torch::Tensor>& gradients, double max_norm);

}  // namespace zoo

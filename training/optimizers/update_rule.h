#pragma once
// The formulas of the optimisers, one file each. A rule knows tensors; which parameters it gets, under which
// names its state is kept and when it is called is the matter of Optimizer.

#include <memory>
#include <string>
#include <vector>

#include <torch/types.h>

#include "training/config/training_config.h"

namespace zoo {

/// Parameters that are treated alike, those without a gradient left out: lists of equal length.
struct ParameterGroup {
  std::vector<torch::Tensor> parameters, gradients;
  std::vector<std::vector<torch::Tensor>> state;  // one list for each entry of initial_state()
  double weight_decay = 0;
};

struct StateTensor {
  std::string name;
  torch::Tensor tensor;  // undefined = this parameter needs none
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  /// What is remembered of `parameter` from one step to the next, before the first; the same names for all.
  virtual std::vector<StateTensor> initial_state(const torch::Tensor& parameter) const = 0;
  /// One step with learning rate `lr`. Called without gradient mode; gradients stay as they are.
  virtual void update(const ParameterGroup& group, double lr) const = 0;
};

/// AdamW (Loshchilov & Hutter 2019): decay apart from the gradient, p -= lr·λ·p. Fused kernel.
std::unique_ptr<UpdateRule> make_adamw(const OptimizerConfig& config);

/// Adam (Kingma & Ba 2015), decay added to the gradient. Fused kernel.
std::unique_ptr<UpdateRule> make_adam(const OptimizerConfig& config);

/// As torch.optim.SGD: g += λ·p, v = momentum·v + g, p -= lr·v. Fused kernel.
std::unique_ptr<UpdateRule> make_sgd(const OptimizerConfig& config);

/// Adafactor (Shazeer & Stern 2018) as torch.optim.Adafactor: for a matrix the mean squares of the gradient
/// are kept by row and by column alone, the step is clipped by its root mean square and scaled with the
/// parameter's own, and lr is the most that a step may change a parameter by, relative to its size. One
/// tensor after the other, so that the largest one is all that a step needs on top.
std::unique_ptr<UpdateRule> make_adafactor(const OptimizerConfig& config);

/// Lion (Chen et al. 2023, algorithm 2): p -= lr·(sign(β1·m + (1-β1)·g) + λ·p), then m = β2·m + (1-β2)·g. One
/// value a parameter is remembered; lr is about a tenth of Adam's, λ ten times its.
std::unique_ptr<UpdateRule> make_lion(const OptimizerConfig& config);

/// Muon (Jordan 2024, https://kellerjordan.github.io/posts/muon) as torch.optim.Muon, for matrices alone: the
/// step is the nearest thing to an orthogonal matrix that a few Newton–Schulz iterations make of the
/// momentum; λ as in AdamW.
std::unique_ptr<UpdateRule> make_muon(const OptimizerConfig& config);

}  // namespace zoo

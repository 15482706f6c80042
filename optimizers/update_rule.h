#pragma once
// The formulas of the optimisers, one file for each. A rule only computes with tensors. Optimizer selects its
// parameters, names its state and calls it.

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

namespace zoo {

/// Parameters that are treated alike, without those that have no gradient: lists of equal length.
struct ParameterGroup {
  std::vector<torch::Tensor> parameters, gradients;
  std::vector<std::vector<torch::Tensor>> state;  // one list for each entry of initial_state()
  double weight_decay = 0;
  /// Parameter::stacked_rows of each.
  std::vector<std::vector<int64_t>> stacked_rows = {};
};

struct StateTensor {
  std::string name;
  torch::Tensor tensor;  // undefined = this parameter does not need it
};

class UpdateRule {
 public:
  virtual ~UpdateRule() = default;
  /// The state that the rule keeps for `parameter` from step to step, as it is before the first one. All
  /// parameters have the same names of states.
  virtual std::vector<StateTensor> initial_state(const torch::Tensor& parameter) const = 0;
  /// Takes one step with learning rate `lr`. Called without gradient mode; does not change the gradients.
  virtual void update(const ParameterGroup& group, double lr) const = 0;
};

}  // namespace zoo

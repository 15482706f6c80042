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
  /// Copies of parameters in 16 bits, which have to be renewed with them; undefined where there is none.
  std::vector<torch::Tensor> rounded = {};
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
  /// The same, and renews `group.rounded`, all in one pass over the parameters. False, and nothing has
  /// happened, where there is no such pass; the caller then does one after the other. Default: false.
  virtual bool update_in_one_pass(const ParameterGroup& /*group*/, double /*lr*/) const { return false; }
};

}  // namespace zoo

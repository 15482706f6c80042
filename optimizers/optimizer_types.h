#pragma once
// The optimisers: the types of `training.optimizer.type`.

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "io/config/registry.h"
#include "optimizers/optimizer_config.h"
#include "optimizers/update_rule.h"

namespace zoo {

/// What the step of a number depends on, beside its own gradients.
///   matrix     at most on the matrix that it is in, where several are stacked in a parameter
///   parameter  on the whole parameter, such as its norm
enum class StepScope { matrix, parameter };

/// An optimiser. Programs add their own with optimizer_types().add(). A type may have keys of its own:
///     optimizer: {type: {type: momentum_sign, decay: 0.9}, lr: 1e-3}
struct OptimizerType : TypeInfo {
  /// The rule, with the keys of `training.optimizer` and those of the type (config.type.as<Keys>()).
  std::function<std::unique_ptr<UpdateRule>(const OptimizerConfig& config)> make;
  /// The peak learning rate of AdamW beside a rule that is for the matrices of hidden layers alone, as Muon
  /// is. Default: the rule updates all parameters.
  std::function<double(const OptimizerConfig& config)> adamw_lr = nullptr;
  StepScope scope = StepScope::matrix;
};

inline std::string_view what_lacks(const OptimizerType& type) {
  return type.make ? std::string_view() : "make, which builds the rule";
}

/// Holds those of OptimizerKind, and added ones.
Registry<OptimizerType>& optimizer_types();

}  // namespace zoo

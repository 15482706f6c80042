#include "optimizers/optimizer_types.h"

#include <string>
#include <utility>

#include "optimizers/library_rules.h"

namespace zoo {
namespace {

OptimizerType rule(OptimizerKind kind, std::string doc,
                   std::unique_ptr<UpdateRule> (*make)(const OptimizerConfig&)) {
  OptimizerType type;
  type.name = name_of(kind);
  type.doc = std::move(doc);
  type.make = make;
  return type;
}

OptimizerType muon_type() {
  auto type =
      rule(OptimizerKind::muon,
           "Orthogonal steps for the matrices and convolutions of hidden layers, AdamW for all others.",
           make_muon);
  type.adamw_lr = [](const OptimizerConfig& config) { return config.muon.adamw_lr.value_or(config.lr); };
  return type;
}

OptimizerType adafactor_type() {
  auto type = rule(OptimizerKind::adafactor, "Little memory; lr is relative to the size of the weights.",
                   make_adafactor);
  type.scope = StepScope::parameter;
  return type;
}

std::vector<OptimizerType> library_optimizers() {
  using enum OptimizerKind;
  return {rule(adamw, "Decoupled weight decay.", make_adamw),
          rule(adam, "Weight decay is added to the gradient (L2).", make_adam),
          rule(sgd, "Weight decay is added to the gradient (L2); with or without momentum.", make_sgd),
          adafactor_type(),
          rule(lion, "Steps by the sign of the momentum; lr about a tenth of AdamW's.", make_lion),
          muon_type()};
}

}  // namespace

Registry<OptimizerType>& optimizer_types() {
  static Registry<OptimizerType> types("optimizer", library_optimizers());
  return types;
}

}  // namespace zoo

#include "tasks/training_observer.h"

#include <cmath>
#include <map>
#include <string>

#include <torch/types.h>

namespace zoo {
namespace {

/// The norm over each top module of a model.
class NormObserver final : public TrainingObserver {
 public:
  Metrics after_step(const Model& model, int64_t) override {
    const torch::NoGradGuard no_grad;
    Metrics squares;
    for (const auto& item : model.named_parameters()) {
      const auto part = item.key().substr(0, item.key().find('.'));
      const auto add = [&](const std::string& name, const torch::Tensor& tensor) {
        const double norm = tensor.norm().item<double>();
        squares[name + part] += norm * norm;
      };
      add("weight_norm_", item.value());
      if (item.value().grad().defined()) add("gradient_norm_", item.value().grad());
    }
    for (auto& [name, value] : squares) value = std::sqrt(value);
    return squares;
  }
};

TrainingObserverType norms() {
  TrainingObserverType type;
  type.name = "norms";
  type.doc = "Norms of the weights and of their gradients by part of the model, at each logged step.";
  type.make = [](const Selection&) { return std::make_unique<NormObserver>(); };
  return type;
}

}  // namespace

Registry<TrainingObserverType>& training_observer_types() {
  static Registry<TrainingObserverType> types("observer", {norms()});
  return types;
}

}  // namespace zoo

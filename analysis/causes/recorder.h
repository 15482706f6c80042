#pragma once
// The activations of one forward pass.

#include <functional>
#include <map>

#include <torch/types.h>

#include "models/observation_scope.h"

namespace zoo {

/// Activations by their places, on the model's device.
using Activations = std::map<ActivationPlace, torch::Tensor>;

/// Which places somebody wants.
using WantedPlaces = std::function<bool(const ActivationPlace&)>;

/// Keeps the activations of the last pass at the places that it wants, and changes nothing.
class ActivationRecorder final : public ActivationObserver {
 public:
  explicit ActivationRecorder(WantedPlaces wanted) : wanted_(std::move(wanted)) {}
  torch::Tensor on(const ActivationPlace& place, const torch::Tensor& x) override;
  const Activations& activations() const { return activations_; }

 private:
  WantedPlaces wanted_;
  Activations activations_;
};

/// The activations of a pass over `batch`, which is on the model's device; the model is in evaluation mode
/// for it. Throws UsageError as ObservationScope.
Activations record_activations(
    Model& model, const Batch& batch,
    const WantedPlaces& wanted = [](const ActivationPlace&) { return true; });

/// The sizes of a model's activations, as a pass over `batch` has them.
struct ObservedLayers {
  StackSide side = StackSide::only;
  int64_t n_layers = 0;
  /// The heads of each layer; 0 for a layer whose mixer has no heads.
  std::vector<int64_t> attention_heads = {}, cross_attention_heads = {};
  bool has_cross_attention = false;
};
/// One entry for each stack, the encoder first.
std::vector<ObservedLayers> observed_layers(const Activations& activations);

}  // namespace zoo

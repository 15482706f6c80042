#include "analysis/causes/recorder.h"

#include <algorithm>

#include <torch/utils.h>

#include "models/inference_scope.h"

namespace zoo {

torch::Tensor ActivationRecorder::on(const ActivationPlace& place, const torch::Tensor& x) {
  if (wanted_(place)) activations_[place] = x;
  return x;
}

Activations record_activations(Model& model, const Batch& batch, const WantedPlaces& wanted) {
  const InferenceScope inference(model);
  ActivationRecorder recorder(wanted);
  const ObservationScope scope(model, recorder);
  model.features(batch);
  return recorder.activations();
}

std::vector<ObservedLayers> observed_layers(const Activations& activations) {
  std::vector<ObservedLayers> stacks;
  for (const auto side : {StackSide::only, StackSide::encoder, StackSide::decoder}) {
    ObservedLayers stack{.side = side};
    for (const auto& [place, x] : activations) {
      if (place.side == side && place.kind == ActivationKind::attention)
        stack.n_layers = std::max(stack.n_layers, place.layer + 1);
      if (place.side == side && place.kind == ActivationKind::cross_attention)
        stack.has_cross_attention = true;
    }
    if (stack.n_layers == 0) continue;
    const auto heads = [&](ActivationKind kind, int64_t layer) {
      const auto found = activations.find({.kind = kind, .layer = layer, .side = side});
      return found == activations.end() ? 0 : found->second.size(2);
    };
    for (int64_t layer = 0; layer < stack.n_layers; ++layer) {
      stack.attention_heads.push_back(heads(ActivationKind::attention_heads, layer));
      stack.cross_attention_heads.push_back(heads(ActivationKind::cross_attention_heads, layer));
    }
    stacks.push_back(std::move(stack));
  }
  return stacks;
}

}  // namespace zoo

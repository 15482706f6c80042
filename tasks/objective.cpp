#include "tasks/objective.h"

#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>

#include "kernels/tensor_lists.h"
#include "tasks/ctc.h"
#include "tasks/token_cross_entropy.h"

namespace zoo {
namespace {

ObjectiveType own_objective() {
  ObjectiveType type;
  type.name = "task";
  type.doc = "The objective that the task has by default.";
  return type;
}

ObjectiveType cross_entropy() {
  ObjectiveType type;
  type.name = "cross_entropy";
  type.doc = "Cross-entropy of the targets.";
  type.make = [](const Selection&, const ObjectiveContext& context) -> std::shared_ptr<const Objective> {
    return std::make_shared<TokenCrossEntropy>(
        TokenCrossEntropyOptions{.label_smoothing = context.label_smoothing});
  };
  return type;
}

/// The gradient with the strides of its parameter. Optimisers read the memory of both in the same order, and
/// convolutions make gradients in another one.
torch::Tensor laid_out_like(const torch::Tensor& parameter, const torch::Tensor& gradient) {
  if (!gradient.defined() || gradient.strides() == parameter.strides()) return gradient;
  return at::empty_strided(parameter.sizes(), parameter.strides(), gradient.options()).copy_(gradient);
}

}  // namespace

Gradients gradients_of(const torch::Tensor& output, const torch::Tensor& output_gradient,
                       const std::vector<torch::Tensor>& inputs) {
  // Nothing that the output depends on is trained.
  if (!output.requires_grad()) return Gradients(inputs.size());
  const Gradients output_gradients = output_gradient.defined() ? Gradients{output_gradient} : Gradients{};
  auto gradients = torch::autograd::grad({output}, inputs, output_gradients, /*retain_graph=*/false,
                                         /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t i = 0; i < inputs.size(); ++i) gradients[i] = laid_out_like(inputs[i], gradients[i]);
  return gradients;
}

void add_gradients(Gradients& sums, const Gradients& terms) {
  Gradients targets, sources;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (!terms[i].defined()) continue;
    if (!sums[i].defined()) {
      sums[i] = terms[i];
    } else {
      targets.push_back(sums[i]);
      sources.push_back(terms[i]);
    }
  }
  foreach_add_(targets, sources);
}

LossAndGradients Objective::differentiate(Model& model, const Batch& part,
                                          const GradientRequest& request) const {
  const auto weighted = loss(model, part) * request.weight;
  request.before_last_pass({});
  return {.loss = weighted.detach(), .gradients = gradients_of(weighted, {}, request.parameters)};
}

Registry<ObjectiveType>& objective_types() {
  static Registry<ObjectiveType> types("objective", {own_objective(), cross_entropy(), ctc_objective()});
  return types;
}

}  // namespace zoo

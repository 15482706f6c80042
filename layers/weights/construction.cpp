#include "layers/weights/construction.h"

#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

namespace zoo {
namespace {

thread_local auto construction_now = Construction::initialized;

}  // namespace

ConstructionScope::ConstructionScope(Construction construction)
    : former_(std::exchange(construction_now, construction)) {}

ConstructionScope::~ConstructionScope() { construction_now = former_; }

torch::TensorOptions parameter_options() {
  return torch::device(construction_now == Construction::shapes_only ? torch::kMeta : torch::kCPU);
}

torch::Tensor drawn_tensor(at::IntArrayRef sizes, const std::function<void(torch::Tensor&)>& draw) {
  const torch::NoGradGuard no_grad;
  auto tensor = torch::empty(sizes, parameter_options());
  if (construction_now == Construction::initialized) draw(tensor);
  return tensor;
}

}  // namespace zoo

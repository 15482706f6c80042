#include "models/inference_scope.h"

#include "layers/weights/weights.h"

namespace zoo {
namespace {

/// The first matrix that a module or a part of it owns: all have one format. Null: there is none.
const WeightMatrix* first_matrix(const torch::nn::Module& module) {
  if (const auto* const owner = dynamic_cast<const MatrixModule*>(&module);
      owner && owner->matrix().defined())
    return &owner->matrix();
  for (const auto& part : module.children()) {
    if (const auto* const matrix = first_matrix(*part)) return matrix;
  }
  return nullptr;
}

struct Use {
  Precision precision = Precision::fp32;
  c10::DeviceType device = c10::DeviceType::CPU;
};

Use use_of(const Model& model) {
  const auto* const matrix = first_matrix(model);
  if (!matrix || matrix->numbers().is_cpu()) return {};
  const auto device = matrix->numbers().device().type();
  if (matrix->format() == WeightFormat::bf16) return {.precision = Precision::bf16, .device = device};
  if (matrix->format() == WeightFormat::fp16) return {.precision = Precision::fp16, .device = device};
  return {.device = device};
}

PrecisionScope scope_of(const Use& use) { return {use.precision, use.device}; }

}  // namespace

Precision precision_in_use(const Model& model) { return use_of(model).precision; }

InferenceScope::InferenceScope(Model& model)
    : model_(model), was_training_(model.is_training()), precision_(scope_of(use_of(model))) {
  if (was_training_) model_.eval();
}

InferenceScope::~InferenceScope() {
  if (was_training_) model_.train();
}

}  // namespace zoo

// Steps of optimisers on a GPU, where parameters of one shape are updated together.

#include <optional>
#include <vector>

#include "base/named_enum.h"
#include "optimizers/optimizer.h"
#include "tests/support/strict_kernels.h"
#include "tests/training/on_a_gpu.h"

namespace zoo::testing {
namespace {

class OptimizersOnAGpu : public OnAGpu {
 protected:
  /// Parameters with seeded gradients of two steps: several of one shape, one of a convolution, one of three
  /// matrices, and vectors.
  static std::vector<Parameter> parameters_on(torch::Device where) {
    torch::manual_seed(5);
    std::vector<Parameter> parameters;
    const auto add = [&](torch::IntArrayRef shape, ParameterRole role, std::vector<int64_t> stacked = {}) {
      const auto value = torch::randn(shape);
      parameters.push_back({fmt::format("w{}", parameters.size()), value.to(where).requires_grad_(true), role,
                            std::move(stacked)});
    };
    for (int i = 0; i < 3; ++i) {
      add({6, 4}, ParameterRole::hidden_matrix);
      add({4, 6}, ParameterRole::hidden_matrix);
      add({12, 4}, ParameterRole::hidden_matrix, {6, 2, 4});
      add({7}, ParameterRole::vector);
    }
    add({6, 2, 3, 3}, ParameterRole::hidden_matrix);
    return parameters;
  }
  /// The parameters and the state after three steps, by name.
  static TensorMap after_steps(const OptimizerConfig& config, torch::Device where) {
    const auto parameters = parameters_on(where);
    Optimizer optimizer(config, parameters);
    for (int step = 0; step < 3; ++step) {
      for (const auto& parameter : parameters)
        parameter.tensor.mutable_grad() = torch::randn(parameter.tensor.sizes()).to(where);
      optimizer.step(0.1);
    }
    auto all = optimizer.state();
    for (const auto& parameter : parameters) all.emplace(parameter.name, parameter.tensor.detach());
    for (auto& [name, tensor] : all) tensor = tensor.to(torch::kCPU, torch::kFloat);
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Each, OptimizersOnAGpu, both_devices(), device_name);

TEST_P(OptimizersOnAGpu, ParametersOfOneShapeTakeTheStepsOfEachAlone) {
  std::vector<OptimizerConfig> configs;
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::lion,
                          OptimizerKind::adafactor, OptimizerKind::muon})
    configs.push_back({.type = kind, .weight_decay = 0.1});
  configs.push_back(configs.back());
  configs.back().muon.lr_scale = MuonLrScale::match_rms_adamw;
  configs.push_back(configs.back());
  configs.back().muon.nesterov = false;
  for (size_t i = 0; i < configs.size(); ++i) {
    configs[i].muon.precision = MuonPrecision::fp32;
    const auto wanted = after_steps(configs[i], torch::kCPU), found = after_steps(configs[i], device());
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [name, tensor] : wanted)
      EXPECT_TRUE(torch::allclose(found.at(name), tensor, 1e-4, 1e-5)) << "way " << i << ", " << name;
  }
}

// Our kernel takes the steps of some optimisers, and writes the copies. After others the copies are renewed.
TEST_P(OptimizersOnAGpu, StepsInOnePassAreTheSameAndRenewCopies) {
  std::optional<StrictKernels> kernels;
  if (is_strict()) kernels.emplace();
  for (const auto kind : {OptimizerKind::adam, OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::lion,
                          OptimizerKind::adafactor}) {
    SCOPED_TRACE(name_of(kind));
    const OptimizerConfig config{.type = kind, .weight_decay = 0.1};
    const auto wanted = after_steps(config, torch::kCPU), found = after_steps(config, device());
    for (const auto& [name, tensor] : wanted)
      EXPECT_TRUE(torch::allclose(found.at(name), tensor, 1e-4, 1e-5)) << name;
    const auto parameters = parameters_on(device());
    Optimizer optimizer(config, parameters);
    std::vector<torch::Tensor> copies;
    for (const auto& parameter : parameters) {
      copies.push_back(torch::zeros_like(parameter.tensor, torch::kBFloat16).detach());
      optimizer.keep_copy(parameter.tensor, copies.back());
    }
    for (const auto& parameter : parameters)
      parameter.tensor.mutable_grad() = torch::ones_like(parameter.tensor).detach();
    optimizer.step(0.1);
    for (size_t i = 0; i < copies.size(); ++i) {
      const auto rounded = parameters[i].tensor.detach().to(torch::kBFloat16);
      EXPECT_TRUE(torch::equal(copies[i].to(torch::kCPU), rounded.to(torch::kCPU))) << parameters[i].name;
    }
  }
}

}  // namespace
}  // namespace zoo::testing
